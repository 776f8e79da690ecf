//! A Linux guest that serves a store to itself through ublk. First the server is killed, then the guest.
//!
//! The store is on a disk of the guest, an image with a file system. The kill of the guest loses the page cache of its kernel: it is a
//! power cut for the store.

use std::fs::File;
use std::thread;
use std::time::Duration;

use bimetal_core::part::random::below;

use crate::common::Bench;
use crate::guest::{DIRECT, Guest, Kernel, WORK};
use crate::served::{Disk, FrontEnd, Server, run};

/// Bytes of the image.
const IMAGE_BYTES: u64 = 192 << 20;

/// The image with the store, mounted at the store's directory. It is unmounted at the end, even after an error.
struct Image(String);

impl Image {
    fn mount(bench: &Bench) -> Result<Self, String> {
        let store = bench.path("s").to_str().unwrap().to_owned();
        run("mount", &["-o", "loop", bench.path("image").to_str().unwrap(), &store])?;
        Ok(Self(store))
    }

    fn unmount(self) -> Result<(), String> {
        run("umount", &[&self.0]).map(drop)
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        // It fails if the image was unmounted.
        let _ = run("umount", &["-l", &self.0]);
    }
}

/// Kills a server and its guest. Returns the number of synced files, all of which must be present.
pub fn kill_in_a_guest(seed: u64) -> u64 {
    try_to_kill(seed).unwrap_or_else(|what| {
        panic!(
            "seed {seed}: {what}\nrepeat with: BIMETAL_KILLS_SEED={seed} BIMETAL_KILLS=1 cargo test -p bimetal-cli --features ublk \
             --test kills ublk"
        )
    })
}

fn try_to_kill(seed: u64) -> Result<u64, String> {
    let bench = Bench::new();
    make(&bench, crate::scheme(seed))?;
    let machine = format!("-m 512 -smp 2 -M pc -drive if=virtio,format=raw,file={}", bench.path("image").display());
    let (kernel, program) = (Kernel::find("ublk_drv").unwrap(), env!("CARGO_BIN_EXE_bimetal"));
    let script = format!("disk=ublkb0\nstore=vda\n{WORK}");
    let mut guest = Guest::start(&bench, &kernel, &[program], &script, &machine)?;
    let queue = guest.hear("queue ")?;
    if queue != "1 write back" {
        return Err(format!("the disk has another kind of cache: `{queue}`"));
    }
    guest.go_on();
    // The file system commits its journal every five seconds, which is a flush; a direct write with FUA is not a flush.
    let flushes: u64 = guest.hear("flushes ")?.parse().unwrap();
    if flushes > 3 {
        return Err(format!("{DIRECT} durable writes led to {flushes} flushes"));
    }
    guest.hear("filled")?;
    guest.go_on();
    guest.hear("trimmed")?;
    guest.go_on();
    let mut random = seed ^ 0x0075_626c_6b00;
    let mut write_some = |guest: &mut Guest, written: u64| -> Result<u64, String> {
        let written = written + 2 + below(&mut random, 20);
        guest.hear(&format!("synced {written}"))?;
        thread::sleep(Duration::from_micros(below(&mut random, 100_000)));
        Ok(written)
    };
    let written = write_some(&mut guest, DIRECT)?;
    // The guest kills the server, and mounts the disk of the next one.
    guest.go_on();
    guest.hear("mounted")?;
    // Some more files may have been synced before the kill.
    write_some(&mut guest, written + 20)?;
    let heard = guest.kill();
    let image = Image::mount(&bench)?;
    let server = Server::start(&bench, &[]);
    server.wait_until_served()?;
    let mut disk = Disk::attach(&bench, FrontEnd::Nbd)?;
    disk.mount_checked()?;
    heard.verify(&disk.fs)?;
    drop((disk, server));
    image.unmount()?;
    Ok(heard.synced - DIRECT)
}

/// Makes the image with a store, and a file system on the store.
fn make(bench: &Bench, scheme: &str) -> Result<(), String> {
    let image = bench.path("image");
    File::create(&image).unwrap().set_len(IMAGE_BYTES).unwrap();
    run("mkfs.ext4", &["-q", image.to_str().unwrap()])?;
    std::fs::create_dir(bench.path("s")).unwrap();
    let image = Image::mount(bench)?;
    bench.succeed(&["create", "s", "--scheme", scheme, "--capacity", "48MiB"]);
    let server = Server::start(bench, &[]);
    server.wait_until_served()?;
    Disk::attach(bench, FrontEnd::Nbd)?.format()?;
    drop(server);
    image.unmount()
}
