//! Bodies of requests: checked as they come in, kept only as far as they are worth reading.

use axum::body::Body;
use futures::StreamExt as _;
use sha2::{Digest as _, Sha256};

use super::secrets::Verifier;

/// Bytes of a body that are kept, for as many bodies as there may be connections. News are small; only a push of very many
/// commits is not.
pub(super) const KEPT: usize = 256 << 10;

/// The longest body in bytes: a little more than what GitHub sends at most, 25 MB.
pub(super) const LONGEST: usize = 26 << 20;

/// A body that has come in whole.
pub(super) struct Content {
    /// The bytes, unless there were more than [`KEPT`].
    pub(super) kept: Option<Vec<u8>>,
    /// The hash of all of them.
    pub(super) hash: [u8; 32],
}

/// Why a body did not come in whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    TooLong,
    Aborted,
}

/// Reads a body, and hands each piece to the verifier.
pub(super) async fn read(body: Body, mut verifier: Option<&mut Verifier>) -> Result<Content, Broken> {
    let mut pieces = body.into_data_stream();
    let (mut kept, mut hash, mut length) = (Some(Vec::new()), Sha256::new(), 0_usize);
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|_| Broken::Aborted)?;
        length += piece.len();
        if length > LONGEST {
            return Err(Broken::TooLong);
        }
        hash.update(&piece);
        if let Some(verifier) = &mut verifier {
            verifier.update(&piece);
        }
        kept = kept.filter(|_| length <= KEPT);
        if let Some(kept) = &mut kept {
            kept.extend_from_slice(&piece);
        }
    }
    Ok(Content { kept, hash: hash.finalize().into() })
}
