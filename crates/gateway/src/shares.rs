//! Fair shares of the gateway: how much of it one route and one source may take.
//!
//! A share is measured against what is free, not against the whole: with a share of one half, a
//! route may have as many connections as are still free. Alone it gets half of all; two that
//! want everything get a third each, nine a tenth, and as much again stays free. So there is
//! always room for others, however many want too much, and nobody is held back while there is
//! plenty. Who is over its share loses nothing it has; it gets no more.

use std::{fmt, net::IpAddr, str::FromStr};

use crate::{
    limits::{Bucket, Clock, Gauge},
    sources::{Admission, Sources},
};

/// What one route or source may have of all connections when it alone wants many, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share(u8);

/// What everybody may take. [`Limits::none`] is everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections with a route, all together.
    pub connections: u32,
    /// Of those, by route.
    pub route: Share,
    /// Of those, by source.
    pub source: Share,
    /// Handshakes per second of a route that has no number of its own.
    pub route_handshakes: Option<u32>,
    /// Handshakes per second of a source.
    pub source_handshakes: Option<u32>,
}

/// Who has what of the gateway now.
#[derive(Debug)]
pub struct Shares {
    limits: Limits,
    routed: Gauge,
    sources: Sources,
    /// Keeps a flood from filling the log.
    remarks: Bucket,
}

/// Why a source is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Excess {
    /// It has its share of connections.
    Share,
    /// It makes too many handshakes.
    Rate,
}

impl Share {
    /// No limit.
    pub const ALL: Self = Self(100);

    /// Whether one that has `live` connections may have one more while `free` are left.
    fn allows(self, live: u32, free: u32) -> bool {
        let part = u64::from(self.0);
        part >= 100 || u64::from(live) * (100 - part) < part * u64::from(free)
    }
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim_end_matches('%').parse() {
            Ok(part @ 1..=100) => Ok(Self(part)),
            _ => Err(format!(
                "`{text}` is not a share in percent; write 1 to 100, where 100 is no limit"
            )),
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl Limits {
    /// No limits.
    pub const fn none() -> Self {
        Self {
            connections: u32::MAX,
            route: Share::ALL,
            source: Share::ALL,
            route_handshakes: None,
            source_handshakes: None,
        }
    }
}

impl Shares {
    /// Nobody has anything yet.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            routed: Gauge::default(),
            sources: Sources::default(),
            remarks: Bucket::default(),
        }
    }

    /// What everybody may take.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Connections that have a route.
    pub fn routed(&self) -> u32 {
        self.routed.get()
    }

    /// Who connects.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    fn free(&self) -> u32 {
        self.limits.connections.saturating_sub(self.routed.get())
    }

    /// Lets a client of `address` in. Called once per connection, as soon as its source is known.
    pub(crate) fn admit(&self, address: IpAddr, now: Clock) -> Result<Admission, Excess> {
        let source = self.sources.of(address, now);
        if !self.limits.source.allows(source.live(), self.free()) {
            return Err(Excess::Share);
        }
        if let Some(rate) = self.limits.source_handshakes
            && !source.in_time(rate, now)
        {
            return Err(Excess::Rate);
        }
        Ok(Admission::new(source))
    }

    /// Whether a route that has `live` connections may have one more. Two threads may pass it
    /// by one each.
    pub(crate) fn route_may_grow(&self, live: u32) -> bool {
        self.limits.route.allows(live, self.free())
    }

    /// Counts one more connection with a route, unless there are as many as may be.
    pub(crate) fn enter(&self) -> bool {
        self.routed.try_enter(Some(self.limits.connections))
    }

    /// Counts one less.
    pub(crate) fn leave(&self) {
        self.routed.leave();
    }

    /// Whether a refusal should be in the log: one a second is.
    pub(crate) fn remarkable(&self, now: Clock) -> bool {
        self.remarks.try_take(1, now)
    }
}

impl Excess {
    /// What metrics and clients' logs call it.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Share => "source_share",
            Self::Rate => "source_handshakes",
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn half_of(connections: u32) -> Limits {
        Limits {
            connections,
            route: Share(50),
            source: Share(50),
            ..Limits::none()
        }
    }

    /// How many connections each of `greedy` routes gets if all take what they can.
    fn taken(shares: &Shares, greedy: usize) -> Vec<u32> {
        let mut live = vec![0; greedy];
        let mut grew = true;
        while grew {
            grew = false;
            for mine in &mut live {
                if shares.route_may_grow(*mine) && shares.enter() {
                    *mine += 1;
                    grew = true;
                }
            }
        }
        live
    }

    #[test]
    fn one_alone_gets_its_share_and_several_leave_room_all_the_same() {
        assert_eq!(taken(&Shares::new(half_of(100)), 1), [50]);
        assert_eq!(taken(&Shares::new(half_of(99)), 2), [33, 33]);
        let nine = Shares::new(half_of(1000));
        assert_eq!(taken(&nine, 9), [100; 9]);
        assert!(nine.route_may_grow(0), "somebody new gets in");
        let quarter = Limits {
            route: Share(25),
            ..half_of(100)
        };
        assert_eq!(taken(&Shares::new(quarter), 1), [25]);
        let all = Limits {
            route: Share::ALL,
            ..half_of(100)
        };
        assert_eq!(taken(&Shares::new(all), 1), [100]);
    }

    #[test]
    fn a_source_is_held_to_its_share_and_another_is_not() {
        let shares = Shares::new(half_of(10));
        let flood: IpAddr = "192.0.2.1".parse().unwrap();
        let other: IpAddr = "192.0.2.2".parse().unwrap();
        let mut held = Vec::new();
        for _ in 0..5 {
            held.push(shares.admit(flood, Clock::zero()).unwrap());
            assert!(shares.enter());
        }
        let refused = shares.admit(flood, Clock::zero()).unwrap_err();
        assert_eq!(refused, Excess::Share);
        assert!(shares.admit(other, Clock::zero()).is_ok());
        held.pop();
        shares.leave();
        assert!(shares.admit(flood, Clock::zero()).is_ok());
    }

    #[test]
    fn a_source_is_held_to_its_rate_and_another_is_not() {
        let shares = Shares::new(Limits {
            source_handshakes: Some(3),
            ..Limits::none()
        });
        let came = |address: &str| {
            let address = address.parse().unwrap();
            (0..10)
                .filter(|_| shares.admit(address, Clock::zero()).is_ok())
                .count()
        };
        assert_eq!(came("192.0.2.1"), 3);
        assert_eq!(came("192.0.2.2"), 3);
    }

    #[test]
    fn a_share_is_a_percentage() {
        assert_eq!("50%".parse(), Ok(Share(50)));
        for text in ["0", "101", "half", "-1", ""] {
            assert!(text.parse::<Share>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn below_all_somebody_new_always_gets_in(
            part in 1_u8..100,
            connections in 20_u32..5000,
            greedy in 1_usize..12,
        ) {
            let shares = Shares::new(Limits { route: Share(part), ..half_of(connections) });
            // Above nine tenths a dozen can leave less than one of twenty.
            prop_assume!(u64::from(connections) * u64::from(100 - part) > 100 * 12);
            taken(&shares, greedy);
            prop_assert!(shares.route_may_grow(0) && shares.enter());
        }
    }
}
