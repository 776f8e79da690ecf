//! Serves memory over NBD until standard input ends: `cargo run --release --example nbd_memory unix:/tmp/nbd.sock 1024`.

use std::env;
use std::io;
use std::process::ExitCode;
use std::thread;

use bimetal_live::MemoryDevice;
use bimetal_live::nbd::{Export, Options, Server};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [address, mebibytes] = &arguments[..] else {
        eprintln!("usage: nbd_memory unix:PATH|tcp:HOST:PORT MEBIBYTES");
        return ExitCode::from(2);
    };
    match serve(address, mebibytes) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("nbd_memory: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(address: &str, mebibytes: &str) -> Result<(), Box<dyn std::error::Error>> {
    let device = MemoryDevice::new(mebibytes.parse::<u64>()? * 2048);
    let server = Server::bind(&address.parse()?, Export::default(), Options::default())?;
    println!("listening at {}", server.address());
    let stop = server.stop();
    thread::spawn(move || {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        stop.stop();
    });
    Ok(server.run(&device)?)
}
