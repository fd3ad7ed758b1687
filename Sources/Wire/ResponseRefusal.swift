/// Why an origin's answer cannot be used.
///
/// Its connection is closed: nothing after this can be trusted.
/// Offsets are counted from the beginning of the span that was parsed.
package enum ResponseParseError: Hashable, Sendable {
    /// Not `HTTP/1.1 SP 3DIGIT SP [reason]` (RFC 9112 §4), or a status below 100.
    case malformedStatusLine
    /// Another major version than 1.
    case version
    case line(LineSyntaxError, at: Int)
    case headTooLarge(bytesMax: Int)
    case tooManyFields(fieldsMax: Int)
    /// 101 to a request that asked for no other protocol (RFC 9110 §15.2.2).
    case unexpectedSwitch
    case invalidContentLength
    case repeatedContentLength
    /// Content-Length and Transfer-Encoding in one message (RFC 9112 §6.3).
    case lengthAndCoding
    /// Transfer-Encoding in HTTP/1.0, or in a 1xx answer (RFC 9112 §6.1).
    case codingNotAllowed
    /// Transfer-Encoding that is not exactly `chunked`; no other coding was asked for.
    case transferEncoding

    /// A sentence for the operator's log.
    package var message: String {
        switch self {
        case .malformedStatusLine: "The status line is malformed."
        case .version: "The version is none of HTTP/1."
        case .line(let fault, at: _): fault.message
        case .headTooLarge(let bytesMax):
            "The answer's head is too large; \(bytesMax) bytes are allowed."
        case .tooManyFields(let fieldsMax):
            "The answer has too many field lines; \(fieldsMax) are allowed."
        case .unexpectedSwitch: "The origin switches protocols unasked."
        case .invalidContentLength: "Content-Length is not one decimal number."
        case .repeatedContentLength: "The answer has more than one Content-Length field."
        case .lengthAndCoding: "The answer has both Content-Length and Transfer-Encoding."
        case .codingNotAllowed:
            "Transfer-Encoding is not allowed in HTTP/1.0 or in a 1xx answer."
        case .transferEncoding: "Transfer-Encoding is not chunked, and nothing else was asked for."
        }
    }
}
