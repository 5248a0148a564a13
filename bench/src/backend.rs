//! The server behind every proxy: echoes frames and sends bulk, over TLS on one
//! port and in raw mode on another. One thread and one listener per core.
//!
//! It is part of the measuring instrument: it does nothing per connection that
//! depends on which proxy the connection came through.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    process::ExitCode,
    thread,
};

use anyhow::{Context as _, Result};
use clap::Args;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::TlsAcceptor;

use crate::{
    pki::Pki,
    protocol::{HEADER, MAX_ECHO, Request},
};

/// Where TLS is served.
pub(crate) const TLS_PORT: u16 = 6001;
/// Where a `ClientHello` is skipped and plain frames follow.
pub(crate) const RAW_PORT: u16 = 6002;
/// Large enough that a raw download is limited by the proxy, not by our calls.
const BULK_CHUNK: usize = 256 * 1024;
/// Two cores are what every proxy gets, too.
const THREADS: usize = 2;

/// Arguments of the hidden subcommand.
#[derive(Debug, Args)]
pub(crate) struct BackendArguments {
    /// Where the certificates are.
    #[arg(long)]
    pki: PathBuf,
}

/// Serves until killed.
pub(crate) fn serve(arguments: &BackendArguments) -> Result<ExitCode> {
    let acceptor = TlsAcceptor::from(Pki::at(&arguments.pki).server()?);
    let mut threads = Vec::new();
    for _ in 0..THREADS {
        let (tls, raw) = (listener(TLS_PORT)?, listener(RAW_PORT)?);
        let acceptor = acceptor.clone();
        threads.push(thread::spawn(move || core(&acceptor, tls, raw)));
    }
    for thread in threads {
        if let Ok(outcome) = thread.join() {
            outcome?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn listener(port: u16) -> Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    socket
        .bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)).into())
        .with_context(|| format!("listening on port {port}"))?;
    socket.listen(4096)?;
    Ok(socket.into())
}

fn core(
    acceptor: &TlsAcceptor,
    tls: std::net::TcpListener,
    raw: std::net::TcpListener,
) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    runtime.block_on(async {
        let (tls, raw) = (TcpListener::from_std(tls)?, TcpListener::from_std(raw)?);
        tokio::spawn(async move {
            while let Ok((stream, _)) = raw.accept().await {
                tokio::spawn(serve_raw(stream));
            }
        });
        loop {
            let (stream, _) = tls.accept().await.context("accepting")?;
            tokio::spawn(serve_tls(acceptor.clone(), stream));
        }
    })
}

// A connection that breaks off is the client's to report, so both ignore errors.
async fn serve_tls(acceptor: TlsAcceptor, stream: TcpStream) {
    if stream.set_nodelay(true).is_ok()
        && let Ok(stream) = acceptor.accept(stream).await
    {
        let _ = answer(stream).await;
    }
}

async fn serve_raw(mut stream: TcpStream) {
    if stream.set_nodelay(true).is_ok() && skip_record(&mut stream).await.is_ok() {
        let _ = answer(stream).await;
    }
}

async fn skip_record(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut header = [0_u8; HEADER];
    stream.read_exact(&mut header).await?;
    let mut body = vec![0; usize::from(u16::from_be_bytes([header[3], header[4]]))];
    stream.read_exact(&mut body).await?;
    Ok(())
}

async fn answer<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S) -> std::io::Result<()> {
    // Grows to the size of the frames in use; an idle connection holds little.
    let mut frame = Vec::new();
    let mut bulk = Vec::new();
    loop {
        let mut header = [0_u8; HEADER];
        stream.read_exact(&mut header).await?;
        match Request::decode(header) {
            Some(Request::Echo(length)) => {
                frame.resize(length.min(MAX_ECHO), 0);
                frame[..HEADER].copy_from_slice(&header);
                stream.read_exact(&mut frame[HEADER..]).await?;
                stream.write_all(&frame).await?;
            }
            Some(Request::Download(mut left)) => {
                bulk.resize(BULK_CHUNK, b'x');
                while left > 0 {
                    let part = left.min(BULK_CHUNK);
                    stream.write_all(&bulk[..part]).await?;
                    left -= part;
                }
            }
            None => return Ok(()),
        }
        stream.flush().await?;
    }
}
