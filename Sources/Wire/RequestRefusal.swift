/// Why a request was refused.
///
/// The connection is closed after the answer: where the next request would begin is not known, or
/// not to be trusted.
/// Offsets are counted from the beginning of the span that was parsed.
package enum RequestParseError: Hashable, Sendable {
    /// Not `method SP target SP HTTP/1.1` (RFC 9112 §3), HTTP/0.9 included.
    case malformedRequestLine
    /// More than one empty line before the request line, or one that is not CR LF (RFC 9112 §2.2).
    case blankLines
    /// A line that is no line of HTTP/1.1.
    case line(LineSyntaxError, at: Int)
    /// A byte in the target that no URI holds: control bytes, `#`, or one that is not ASCII.
    case targetByte(UInt8, at: Int)
    /// The target is none of the four forms, or not the one its method demands (RFC 9112 §3.2).
    case targetForm
    case targetTooLong(bytesMax: Int)
    /// No method that exists is so long (RFC 9112 §3).
    case methodTooLong(bytesMax: Int)
    /// Another major version than 1.
    case version
    case headTooLarge(bytesMax: Int)
    case tooManyFields(fieldsMax: Int)
    /// HTTP/1.1 without Host (RFC 9112 §3.2).
    case missingHost
    case repeatedHost
    /// Host, or the authority of an absolute-form target, is not `host[:port]` (RFC 9110 §7.2).
    case invalidHost
    /// Not one decimal number below 2⁶⁴ (RFC 9110 §8.6).
    case invalidContentLength
    case repeatedContentLength
    /// Content-Length and Transfer-Encoding in one message (RFC 9112 §6.3).
    case lengthAndCoding
    /// Transfer-Encoding in HTTP/1.0 (RFC 9112 §6.1).
    case codingInHTTP10
    /// Transfer-Encoding that is no list of codings, or not one final `chunked` (RFC 9112 §6.1).
    case malformedTransferEncoding
    case unknownTransferCoding
    /// An expectation other than `100-continue` (RFC 9110 §10.1.1).
    case unknownExpectation

    /// The status code of the answer.
    package var status: UInt16 {
        switch self {
        case .malformedRequestLine, .blankLines, .line, .targetByte, .targetForm, .missingHost,
            .repeatedHost, .invalidHost, .invalidContentLength, .repeatedContentLength,
            .lengthAndCoding, .codingInHTTP10, .malformedTransferEncoding:
            400
        case .targetTooLong: 414
        case .unknownExpectation: 417
        case .headTooLarge, .tooManyFields: 431
        case .unknownTransferCoding, .methodTooLong: 501
        case .version: 505
        }
    }

    /// A sentence for whoever sent the request.
    package var message: String {
        switch self {
        case .malformedRequestLine:
            "The request line is not a method, a target and a version with one space between them."
        case .blankLines: "More than one empty line precedes the request line."
        case .line(let fault, at: _): fault.message
        case .targetByte(UInt8(ascii: "#"), at: _):
            "The request target holds a #, which has to be percent-encoded: # is written %23."
        case .targetByte(let byte, at: _):
            "The request target holds the byte \(byte), which has to be percent-encoded."
        case .targetForm:
            "The request target is not a path, an absolute http or https URL, or what its method "
                + "demands."
        case .targetTooLong(let bytesMax):
            "The request target is too long; \(bytesMax) bytes are allowed."
        case .methodTooLong(let bytesMax):
            "The method is unknown: it is longer than \(bytesMax) bytes."
        case .version: "The version is none of HTTP/1."
        case .headTooLarge(let bytesMax):
            "The request's head is too large; \(bytesMax) bytes are allowed."
        case .tooManyFields(let fieldsMax):
            "The request has too many field lines; \(fieldsMax) are allowed."
        case .missingHost: "The request has no Host field."
        case .repeatedHost: "The request has more than one Host field."
        case .invalidHost: "The host is not a name or address with an optional port."
        case .invalidContentLength: "Content-Length is not one decimal number."
        case .repeatedContentLength: "The request has more than one Content-Length field."
        case .lengthAndCoding: "The request has both Content-Length and Transfer-Encoding."
        case .codingInHTTP10: "Transfer-Encoding is not allowed in HTTP/1.0."
        case .malformedTransferEncoding:
            "Transfer-Encoding is malformed, or chunked is not its one and final coding."
        case .unknownTransferCoding: "The only transfer coding understood is chunked."
        case .unknownExpectation: "The only expectation understood is 100-continue."
        }
    }
}
