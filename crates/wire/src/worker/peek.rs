//! Reading a client's first bytes until the program has decided.

use super::{End, Flow, Program, Session, Token, Worker};
use crate::{
    program::{ClientLeg, Peek, Route},
    relay,
    slab::Side,
};

impl<P: Program> Worker<P> {
    /// Reads what the client sent and asks the program about it.
    pub(super) fn read_hello(&mut self, token: Token, session: &mut Session<P::Session>) -> Flow {
        while session.client.readable && !session.client.eof {
            let count = match relay::read(&mut session.client, &mut self.tools.buffer) {
                Ok(count) => count,
                Err(error) => {
                    return Flow::Over(End::ClientFailed(std::io::Error::from(error).kind()));
                }
            };
            if count == 0 {
                break;
            }
            match self.ask(token, session, count) {
                Peek::More => {}
                Peek::Dial(route) => return self.decide(token, session, *route),
                Peek::Refuse(refusal) => return self.refuse(session, &refusal),
            }
            if session.client.held.len() > self.config.peek_limit {
                return self.linger(session, &[], End::HelloTooLong);
            }
        }
        if session.client.eof {
            return Flow::Over(End::ClientGone);
        }
        self.wait_for_hello(token, session)
    }

    /// Shows the program `count` new bytes. They are kept unless it refuses.
    fn ask(&mut self, token: Token, session: &mut Session<P::Session>, count: usize) -> Peek {
        let new = &self.tools.buffer[..count];
        let held = &mut session.client.held;
        let seen = held.len();
        if seen == 0 {
            // Usually this is the whole of it: one allocation of the right size.
            *held = new.to_vec();
        } else {
            held.extend_from_slice(new);
        }
        let cx = self
            .place
            .context(session.origin, session.client.fd.as_ref(), token);
        self.shared
            .program
            .peek(&cx, &mut session.program, held, seen)
    }

    /// Sets up both legs as the program decided and starts dialling.
    pub(super) fn decide(
        &mut self,
        token: Token,
        session: &mut Session<P::Session>,
        route: Route,
    ) -> Flow {
        let skip = route.skip.min(session.client.held.len());
        session.client.held.drain(..skip);
        session.server.out = route.prefix;
        session.server.transform = route.server;
        if let Err(end) = self.prepare_hello(session) {
            return self.linger(session, &[], end);
        }
        match route.client {
            ClientLeg::Plain => {}
            ClientLeg::Later => session.later = true,
            ClientLeg::Tls(transform) => {
                session.client.transform = Some(transform);
                if let Err(end) = self.feed_client(session) {
                    return self.linger(session, &[], end);
                }
            }
        }
        self.dial(token, session, None)
    }

    /// Queues what the server's transform says first, so that it is ready when the server is.
    fn prepare_hello(&mut self, session: &mut Session<P::Session>) -> Result<(), End> {
        let tools = &mut self.tools;
        tools.plain.clear();
        relay::open(
            &mut session.server,
            &mut [],
            &mut tools.plain,
            &mut tools.wire,
            Side::Server,
        )
    }

    /// Gives the raw bytes held so far to the client's new transform.
    pub(super) fn feed_client(&mut self, session: &mut Session<P::Session>) -> Result<(), End> {
        let mut raw = std::mem::take(&mut session.client.held);
        let tools = &mut self.tools;
        tools.plain.clear();
        // A stream that ended behind the hello ends in the transform's eyes only
        // when the socket says so again.
        session.client.readable |= session.client.eof;
        session.client.eof = false;
        relay::open(
            &mut session.client,
            &mut raw,
            &mut tools.plain,
            &mut tools.wire,
            Side::Client,
        )?;
        session.client.held.extend_from_slice(&tools.plain);
        Ok(())
    }
}
