use std::fmt;

use crate::error::Error;

/// A platform of programs: operating system and architecture.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Platform {
    /// `linux`.
    pub os: String,
    /// The architecture by its name in images: `amd64`, `arm64`.
    pub architecture: String,
    /// The variant of the architecture: `v7` of `arm`.
    pub variant: Option<String>,
}

impl Platform {
    /// Reads `linux/amd64` or `linux/arm/v7`.
    ///
    /// # Errors
    ///
    /// If it is something else.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let parts: Vec<&str> = text.split('/').collect();
        let is_word = |part: &str| !part.is_empty() && part.chars().all(|char| char.is_ascii_alphanumeric());
        let platform = |os: &str, architecture: &str, variant: Option<&str>| Self {
            os: os.to_owned(),
            architecture: architecture.to_owned(),
            variant: variant.map(str::to_owned),
        };
        match parts.as_slice() {
            [os, architecture] if is_word(os) && is_word(architecture) => {
                Ok(platform(os, architecture, None))
            }
            [os, architecture, variant] if parts.iter().all(|part| is_word(part)) => {
                Ok(platform(os, architecture, Some(variant)))
            }
            _ => {
                Err(Error::Input(format!("{text:?} is no platform: write it as linux/amd64 or linux/arm64")))
            }
        }
    }

    /// The target of Rust for the platform, with a libc that can be linked statically.
    pub fn target(&self) -> Option<&'static str> {
        match (self.os.as_str(), self.architecture.as_str(), self.variant.as_deref()) {
            ("linux", "amd64", _) => Some("x86_64-unknown-linux-musl"),
            ("linux", "arm64", _) => Some("aarch64-unknown-linux-musl"),
            ("linux", "arm", Some("v7")) => Some("armv7-unknown-linux-musleabihf"),
            ("linux", "386", _) => Some("i686-unknown-linux-musl"),
            ("linux", "ppc64le", _) => Some("powerpc64le-unknown-linux-musl"),
            ("linux", "riscv64", _) => Some("riscv64gc-unknown-linux-musl"),
            ("linux", "s390x", _) => Some("s390x-unknown-linux-musl"),
            _ => None,
        }
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)?;
        self.variant.as_ref().map_or(Ok(()), |variant| write!(f, "/{variant}"))
    }
}

/// The facts about a program that its file contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The platform of the program.
    pub platform: Platform,
    /// The loader. A program with a loader is linked dynamically and does not start in an image without it.
    pub loader: Option<String>,
}

impl Program {
    /// Reads the header of a program in the format of Linux (ELF).
    ///
    /// # Errors
    ///
    /// If it is no such program, or of a machine that images have no name for.
    pub fn read(bytes: &[u8]) -> Result<Self, Error> {
        let none = || Error::Input("this is no program for Linux (an ELF file)".to_owned());
        if bytes.get(..4) != Some(b"\x7fELF") {
            return Err(none());
        }
        let elf = Elf::new(bytes).ok_or_else(none)?;
        let (architecture, variant) = match elf.number(18, 2).ok_or_else(none)? {
            3 => ("386", None),
            21 => ("ppc64le", None),
            22 => ("s390x", None),
            40 => ("arm", Some("v7")),
            62 => ("amd64", None),
            183 => ("arm64", None),
            243 => ("riscv64", None),
            machine => {
                return Err(Error::Input(format!(
                    "the program is for a machine that is not known ({machine})"
                )));
            }
        };
        let platform = Platform {
            os: "linux".into(),
            architecture: architecture.into(),
            variant: variant.map(str::to_owned),
        };
        Ok(Self { platform, loader: elf.loader() })
    }
}

/// The fields of an ELF file that are needed.
struct Elf<'a> {
    bytes: &'a [u8],
    is_wide: bool,
    is_little: bool,
}

impl<'a> Elf<'a> {
    fn new(bytes: &'a [u8]) -> Option<Self> {
        Some(Self { bytes, is_wide: *bytes.get(4)? == 2, is_little: *bytes.get(5)? == 1 })
    }

    fn number(&self, at: usize, size: usize) -> Option<u64> {
        let bytes = self.bytes.get(at..at.checked_add(size)?)?;
        let add = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        Some(if self.is_little { bytes.iter().rev().fold(0, add) } else { bytes.iter().fold(0, add) })
    }

    /// The path in the segment of the loader.
    fn loader(&self) -> Option<String> {
        const INTERPRETER: u64 = 3;
        let wide = self.is_wide;
        let word = if wide { 8 } else { 4 };
        let table = usize::try_from(self.number(if wide { 32 } else { 28 }, word)?).ok()?;
        let size = usize::try_from(self.number(if wide { 54 } else { 42 }, 2)?).ok()?;
        let count = usize::try_from(self.number(if wide { 56 } else { 44 }, 2)?).ok()?;
        for index in 0..count {
            let at = table.checked_add(index.checked_mul(size)?)?;
            if self.number(at, 4)? != INTERPRETER {
                continue;
            }
            let (offset, length) = if wide { (8, 32) } else { (4, 16) };
            let start = usize::try_from(self.number(at.checked_add(offset)?, word)?).ok()?;
            let length = usize::try_from(self.number(at.checked_add(length)?, word)?).ok()?;
            let path = self.bytes.get(start..start.checked_add(length)?)?;
            return Some(String::from_utf8_lossy(path).trim_end_matches('\0').to_owned());
        }
        None
    }
}
