use super::*;

fn sectors(storage: &CrashStorage) -> Vec<u8> {
    storage.bytes("f").chunks(512).map(|sector| sector[0]).collect()
}

#[test]
fn a_cut_leaves_of_each_sector_some_state_since_the_sync() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let storage = CrashStorage::new();
        let file = storage.open("f", Access::Create, false).unwrap();
        storage.sync().unwrap();
        file.write_at(0, &[1; 1024]).unwrap();
        file.sync().unwrap();
        file.write_at(0, &[2; 1024]).unwrap();
        file.write_at(512, &[3; 1024]).unwrap();
        storage.restart(Loss::Sectors, seed);
        seen.insert(sectors(&storage));
    }
    assert!(seen.iter().all(|state| state[0] != 3 && state[1] != 0), "{seen:?}");
    assert_eq!(seen.len(), 2 * 3 * 2, "{seen:?}");
}

#[test]
fn what_is_punched_makes_room() {
    let storage = CrashStorage::new();
    let file = storage.open("f", Access::Create, false).unwrap();
    file.write_at(100, &[1; 5000]).unwrap();
    storage.set_room(Some(2 * ROOM_BYTES));
    let full = |done: io::Result<()>| done.is_err_and(|error| error.kind() == ErrorKind::StorageFull);
    file.allocate(3 * ROOM_BYTES, 1).unwrap();
    assert!(full(file.write_at(4 * ROOM_BYTES, &[2; 5000])));
    file.write_at(3 * ROOM_BYTES, &[2; 4096]).unwrap();
    file.punch(0, 6000).unwrap();
    file.write_at(4 * ROOM_BYTES, &[2; 5000]).unwrap();
    assert!(full(file.write_at(0, &[3])) && full(file.allocate(9 * ROOM_BYTES, 1)));
    file.set_len(0).unwrap();
    file.write_at(0, &[3; 4 * ROOM_BYTES as usize]).unwrap();
}

#[test]
fn a_kill_loses_nothing_yet() {
    let storage = CrashStorage::new();
    let file = storage.open("f", Access::Create, false).unwrap();
    storage.sync().unwrap();
    file.write_at(0, &[1; 512]).unwrap();
    storage.set_fault(storage.changes() + 2, Fault::Crash);
    file.write_at(0, &[2; 512]).unwrap();
    assert!(file.sync().is_err() && file.write_at(0, &[3; 512]).is_err() && storage.is_crashed());
    storage.restart(Loss::Kill, 0);
    assert_eq!(sectors(&storage), [2]);
    storage.restart(Loss::All, 0);
    assert_eq!(sectors(&storage).len(), 0);
}

#[test]
fn what_a_failed_sync_left_open_stays_open() {
    let storage = CrashStorage::new();
    let file = storage.open("f", Access::Create, false).unwrap();
    file.sync().unwrap();
    storage.sync().unwrap();
    storage.set_fault(storage.changes() + 2, Fault::Io);
    file.write_at(0, &[1; 512]).unwrap();
    assert!(file.sync().is_err());
    file.sync().unwrap();
    let cut = storage.clone();
    cut.restart(Loss::All, 0);
    assert_eq!(sectors(&cut).len(), 0);
    let again = storage.clone();
    let written_again = again.open("f", Access::Write, false).unwrap();
    written_again.write_at(0, &[3; 100]).unwrap();
    written_again.sync().unwrap();
    again.restart(Loss::Nothing, 0);
    let bytes = again.bytes("f");
    assert_eq!((bytes[99], bytes[100]), (3, 1), "the old bytes cannot replace the new ones");
    file.write_at(512, &[2; 512]).unwrap();
    assert_eq!(sectors(&storage), [1, 2]);
    file.drop_cached().unwrap();
    assert_eq!(sectors(&storage), [0, 2], "what waits to be written stays");
}
