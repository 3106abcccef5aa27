use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};

/// What keys begin with, so that scanners of secrets can find them.
const PREFIX: &str = "wk-";

/// Makes a key of 256 bits of chance, and its digest for an LLMGatewayPolicy.
///
/// # Errors
///
/// If the system has no chance to offer.
pub fn new_key() -> Result<(String, String), String> {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).map_err(|_| "the system has no random numbers".to_owned())?;
    let key = format!("{PREFIX}{}", hex(&bytes));
    let digested = hex(digest(&SHA256, key.as_bytes()).as_ref());
    Ok((key, digested))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
