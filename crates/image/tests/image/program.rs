use std::collections::BTreeMap;

use watchkeeper_image::{Input, Platform};

/// The smallest thing that counts as a static program for a machine.
pub(crate) fn elf(machine: u8) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
    bytes[16] = 2;
    bytes[18] = machine;
    bytes[54] = 56;
    bytes
}

/// One that asks for a loader.
pub(crate) fn dynamic_elf() -> Vec<u8> {
    let path = b"/lib64/ld-linux-x86-64.so.2\0";
    let mut bytes = elf(62);
    bytes[32] = 64; // where the table of segments is
    bytes[56] = 1; // how many there are
    let mut segment = vec![0; 56];
    segment[0] = 3;
    segment[8] = 120;
    segment[32] = path.len().try_into().unwrap();
    bytes.extend(segment);
    bytes.extend(path);
    bytes
}

pub(crate) fn input() -> Input {
    Input {
        name: "shop".into(),
        programs: vec![(Platform::parse("linux/amd64").unwrap(), elf(62))],
        certificates: None,
        labels: BTreeMap::from([("team".to_owned(), "sales".to_owned())]),
        sbom: Some(br#"{"bomFormat":"CycloneDX"}"#.to_vec()),
        time: 0,
    }
}
