//! The reasons of a [`Status`](crate::Status), as `metav1.StatusReason` has them.

/// The request cannot be understood.
pub const BAD_REQUEST: &str = "BadRequest";
/// The sender of the request is not known.
pub const UNAUTHORIZED: &str = "Unauthorized";
/// The sender of the request may not do this.
pub const FORBIDDEN: &str = "Forbidden";
/// The object, or the resource, is not there.
pub const NOT_FOUND: &str = "NotFound";
/// The resource does not have this verb.
pub const METHOD_NOT_ALLOWED: &str = "MethodNotAllowed";
/// None of the media types asked for can be served.
pub const NOT_ACCEPTABLE: &str = "NotAcceptable";
/// An object of this name is there already.
pub const ALREADY_EXISTS: &str = "AlreadyExists";
/// The object has changed since it was read, or others own what is to be changed.
pub const CONFLICT: &str = "Conflict";
/// The object is gone for good.
pub const GONE: &str = "Gone";
/// The version asked for has been forgotten.
pub const EXPIRED: &str = "Expired";
/// The body is too large.
pub const REQUEST_ENTITY_TOO_LARGE: &str = "RequestEntityTooLarge";
/// The media type of the body is not understood.
pub const UNSUPPORTED_MEDIA_TYPE: &str = "UnsupportedMediaType";
/// The object breaks rules, which the causes name.
pub const INVALID: &str = "Invalid";
/// Too much is asked for; the client has to wait.
pub const TOO_MANY_REQUESTS: &str = "TooManyRequests";
/// The server failed.
pub const INTERNAL_ERROR: &str = "InternalError";
/// The server cannot do this now.
pub const SERVICE_UNAVAILABLE: &str = "ServiceUnavailable";
/// The server did not finish in time.
pub const TIMEOUT: &str = "Timeout";
/// The server expects this to work if it is tried again later.
pub const SERVER_TIMEOUT: &str = "ServerTimeout";

/// The program that would send a request has not declared it. No server says so: it was not sent.
pub const UNDECLARED: &str = "Undeclared";

/// The cause of a [`Status`](crate::Status) about a version that the server has not reached yet.
pub const RESOURCE_VERSION_TOO_LARGE: &str = "ResourceVersionTooLarge";
/// The cause of a conflict about a field that another manager owns.
pub const FIELD_MANAGER_CONFLICT: &str = "FieldManagerConflict";

/// The HTTP status code that belongs to a reason; 500 for those that are not known.
pub fn code(reason: &str) -> u16 {
    match reason {
        BAD_REQUEST => 400,
        UNAUTHORIZED => 401,
        FORBIDDEN => 403,
        NOT_FOUND => 404,
        METHOD_NOT_ALLOWED => 405,
        NOT_ACCEPTABLE => 406,
        ALREADY_EXISTS | CONFLICT => 409,
        GONE | EXPIRED => 410,
        REQUEST_ENTITY_TOO_LARGE => 413,
        UNSUPPORTED_MEDIA_TYPE => 415,
        INVALID => 422,
        TOO_MANY_REQUESTS => 429,
        SERVICE_UNAVAILABLE => 503,
        TIMEOUT => 504,
        _ => 500,
    }
}
