//! The file format of bbolt, as far as it takes to read one bucket: pages, which form trees of keys and values.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// The numbers that a file begins with.
const MAGIC: u32 = 0xED0C_DAED;
const VERSION: u32 = 2;

/// The length of the head of a page, and of what describes one element of it.
const HEAD: usize = 16;
const ELEMENT: usize = 16;

/// The length of what a file says about itself, up to and without its checksum.
const META: usize = 56;

/// What pages are for.
const BRANCH: u16 = 0x01;
const LEAF: u16 = 0x02;

/// An element of a leaf whose value is a bucket.
const BUCKET: u32 = 0x01;

/// The sizes that pages have on machines there are.
const PAGE_SIZES: [usize; 5] = [4096, 8192, 16384, 32768, 65536];

/// No tree is deeper: each level has at least two elements.
const MAX_DEPTH: usize = 40;

/// The largest page: that of a value of etcd, which is no larger than 1.5 MiB unless somebody allows more.
const MAX_PAGE: usize = 256 << 20;

/// Why a file cannot be read.
#[derive(Debug)]
pub(super) enum Damaged {
    Io(io::Error),
    Content(String),
}

impl From<io::Error> for Damaged {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// A database file that is open.
pub(super) struct Bolt {
    file: File,
    length: u64,
    page_size: usize,
    root: u64,
}

/// A tree of keys and values.
pub(super) enum Bucket {
    /// In pages of its own.
    Pages(u64),
    /// In the value that stands for it, since there is so little.
    Inline(Vec<u8>),
}

type Visit<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> Result<(), Damaged>;

impl Bolt {
    pub(super) fn open(file: File) -> Result<Self, Damaged> {
        let length = file.metadata()?.len();
        let mut first = vec![0; HEAD + META + 8];
        let short = |_| Damaged::Content("it is too short".into());
        file.read_exact_at(&mut first, 0).map_err(short)?;
        let first = meta(&first);
        // The second one is a page later. If the first one cannot be read, how much that is has to be tried.
        let sizes = first.as_ref().map_or(&PAGE_SIZES[..], |meta| std::slice::from_ref(&meta.page_size));
        let seconds = sizes.iter().filter_map(|size| {
            let mut bytes = vec![0; HEAD + META + 8];
            file.read_exact_at(&mut bytes, *size as u64).ok()?;
            meta(&bytes).filter(|meta| meta.page_size == *size)
        });
        let newest = seconds.chain(first.clone()).max_by_key(|meta| meta.transaction);
        let Some(Meta { page_size, root, .. }) = newest else {
            return Err(Damaged::Content("it does not begin as one".into()));
        };
        Ok(Self { file, length, page_size, root })
    }

    /// The bucket of a name.
    pub(super) fn bucket(&self, name: &[u8]) -> Result<Option<Bucket>, Damaged> {
        let mut found = None;
        let mut budget = self.budget();
        self.visit(self.root, 0, &mut budget, &mut |flags, key, value| {
            if flags & BUCKET != 0 && key == name {
                let (root, inline) =
                    value.split_at_checked(HEAD).ok_or_else(|| bad("a bucket is cut off"))?;
                found = Some(match number(root, 0)? {
                    0 => Bucket::Inline(inline.to_vec()),
                    root => Bucket::Pages(root),
                });
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Calls the function with all keys and values of a bucket, in the order of the keys.
    pub(super) fn walk(&self, bucket: &Bucket, visit: Visit<'_>) -> Result<(), Damaged> {
        let mut visit = |_, key: &[u8], value: &[u8]| visit(key, value);
        match bucket {
            Bucket::Pages(root) => self.visit(*root, 0, &mut self.budget(), &mut visit),
            Bucket::Inline(page) => leaf(page, &mut visit),
        }
    }

    /// How many pages there can be: a file that refers to more goes in circles.
    fn budget(&self) -> u64 {
        self.length / self.page_size as u64 + 1
    }

    fn visit(
        &self,
        page: u64,
        depth: usize,
        budget: &mut u64,
        visit: VisitElement<'_>,
    ) -> Result<(), Damaged> {
        *budget = budget.checked_sub(1).ok_or_else(|| bad("its pages go in circles"))?;
        if depth > MAX_DEPTH {
            return Err(bad("a tree is too deep"));
        }
        let page = self.page(page)?;
        match short(&page, 8)? {
            LEAF => leaf(&page, visit),
            BRANCH => {
                for element in 0..usize::from(short(&page, 10)?) {
                    let child = number(&page, HEAD + element * ELEMENT + 8)?;
                    self.visit(child, depth + 1, budget, visit)?;
                }
                Ok(())
            }
            _ => Err(bad("a page is neither a branch nor a leaf")),
        }
    }

    /// A page, with those that it runs over into.
    fn page(&self, id: u64) -> Result<Vec<u8>, Damaged> {
        let outside = || bad("a page is outside of the file");
        let start = id.checked_mul(self.page_size as u64).ok_or_else(outside)?;
        let mut head = [0; HEAD];
        self.file.read_exact_at(&mut head, start).map_err(|_| outside())?;
        if number(&head, 0)? != id {
            return Err(bad("a page says that it is another one"));
        }
        let overflow = word(&head, 12)? as usize;
        let length = overflow.checked_add(1).and_then(|pages| pages.checked_mul(self.page_size));
        let length = length.filter(|length| *length <= MAX_PAGE && *length as u64 <= self.length);
        let mut bytes = vec![0; length.ok_or_else(outside)?];
        self.file.read_exact_at(&mut bytes, start).map_err(|_| outside())?;
        Ok(bytes)
    }
}

#[derive(Clone)]
struct Meta {
    page_size: usize,
    root: u64,
    transaction: u64,
}

/// What a file says about itself, if it is whole: there are two of these, of which one may have been written when the power went.
fn meta(page: &[u8]) -> Option<Meta> {
    let meta = page.get(HEAD..)?;
    let is_whole = word(meta, 0).ok()? == MAGIC
        && word(meta, 4).ok()? == VERSION
        && number(meta, META).ok()? == fnv(meta.get(..META)?);
    let page_size = word(meta, 8).ok()? as usize;
    (is_whole && PAGE_SIZES.contains(&page_size)).then_some(Meta {
        page_size,
        root: number(meta, 16).ok()?,
        transaction: number(meta, 48).ok()?,
    })
}

/// FNV-1a of 64 bits.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// What is called with the flags, the key and the value of each element.
type VisitElement<'a> = &'a mut dyn FnMut(u32, &[u8], &[u8]) -> Result<(), Damaged>;

fn leaf(page: &[u8], visit: VisitElement<'_>) -> Result<(), Damaged> {
    for element in 0..usize::from(short(page, 10)?) {
        let at = HEAD + element * ELEMENT;
        let (flags, position) = (word(page, at)?, word(page, at + 4)? as usize);
        let (key, value) = (word(page, at + 8)? as usize, word(page, at + 12)? as usize);
        let outside = || bad("an element is outside of its page");
        let rest = at.checked_add(position).and_then(|start| page.get(start..)).ok_or_else(outside)?;
        let (key, rest) = rest.split_at_checked(key).ok_or_else(outside)?;
        visit(flags, key, rest.get(..value).ok_or_else(outside)?)?;
    }
    Ok(())
}

fn bad(reason: &str) -> Damaged {
    Damaged::Content(reason.into())
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], Damaged> {
    let rest = bytes.get(at..).and_then(|rest| rest.first_chunk::<N>());
    rest.copied().ok_or_else(|| bad("a page is cut off"))
}

fn short(bytes: &[u8], at: usize) -> Result<u16, Damaged> {
    array(bytes, at).map(u16::from_le_bytes)
}

fn word(bytes: &[u8], at: usize) -> Result<u32, Damaged> {
    array(bytes, at).map(u32::from_le_bytes)
}

fn number(bytes: &[u8], at: usize) -> Result<u64, Damaged> {
    array(bytes, at).map(u64::from_le_bytes)
}
