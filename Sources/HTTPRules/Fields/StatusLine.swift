import Ground

/// The first line of a response (RFC 9112 §4).
package enum StatusLine {
    /// Returns the status code of a line `HTTP/1.x NNN …`; `nil` if the bytes do not begin with
    /// one.
    static func status(_ bytes: Span<UInt8>) -> UInt16? {
        guard bytes.count >= 12, bytes.matches("HTTP/1.", at: 0..<7), bytes[8] == 0x20,
            let code = bytes.decimal(at: 9..<12)
        else { return nil }
        return UInt16(code)
    }

    /// Appends the status line of `head` in HTTP/1.1.
    ///
    /// The reason phrase is the one received, even if empty, or the registered one if the response
    /// came without a status line.
    static func append(_ head: ResponseHead, to bytes: inout [UInt8]) {
        bytes.append(contentsOf: "HTTP/1.1 ".utf8)
        ASCII.append(UInt64(head.status), to: &bytes)
        bytes.append(0x20)
        if let reason = reason(head) {
            bytes.append(contentsOf: head.bytes[reason])
        } else {
            bytes.append(contentsOf: standardReason(head.status).utf8)
        }
        bytes.appendLineEnd()
    }

    /// Returns the HTTP version of a received response as written in Via (RFC 9110 §7.6.3).
    package static func version(_ head: ResponseHead) -> String {
        head.bytes.count > 8 && head.bytes.starts(with: "HTTP/1.0 ".utf8) ? "1.0" : "1.1"
    }

    /// Returns the range of the reason phrase; `nil` if there is no status line with this status,
    /// or the phrase holds a byte that is not allowed.
    private static func reason(_ head: ResponseHead) -> Range<Int>? {
        let bytes = head.bytes.span
        guard status(bytes) == head.status else { return nil }
        var end = 12
        while end < bytes.count, bytes[end] != 0x0D {
            guard bytes[end] == 0x09 || (bytes[end] >= 0x20 && bytes[end] != 0x7F) else {
                return nil
            }
            end += 1
        }
        return min(13, end)..<end
    }

    /// Returns the registered reason phrase (RFC 9110 §15); empty for an unregistered status.
    package static func standardReason(_ status: UInt16) -> String {
        switch status {
        case 100..<200: interim(status)
        case 200..<300: success(status)
        case 300..<400: redirection(status)
        case 400..<500: clientError(status)
        default: serverError(status)
        }
    }

    private static func interim(_ status: UInt16) -> String {
        switch status {
        case 100: "Continue"
        case 101: "Switching Protocols"
        case 102: "Processing"
        case 103: "Early Hints"
        default: ""
        }
    }

    private static func success(_ status: UInt16) -> String {
        switch status {
        case 200: "OK"
        case 201: "Created"
        case 202: "Accepted"
        case 203: "Non-Authoritative Information"
        case 204: "No Content"
        case 205: "Reset Content"
        case 206: "Partial Content"
        case 207: "Multi-Status"
        case 208: "Already Reported"
        case 226: "IM Used"
        default: ""
        }
    }

    private static func redirection(_ status: UInt16) -> String {
        switch status {
        case 300: "Multiple Choices"
        case 301: "Moved Permanently"
        case 302: "Found"
        case 303: "See Other"
        case 304: "Not Modified"
        case 305: "Use Proxy"
        case 307: "Temporary Redirect"
        case 308: "Permanent Redirect"
        default: ""
        }
    }

    private static func clientError(_ status: UInt16) -> String {
        switch status {
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 402: "Payment Required"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 406: "Not Acceptable"
        case 407: "Proxy Authentication Required"
        case 408: "Request Timeout"
        case 409: "Conflict"
        case 410: "Gone"
        case 411: "Length Required"
        case 412: "Precondition Failed"
        case 413: "Content Too Large"
        case 414: "URI Too Long"
        case 415: "Unsupported Media Type"
        case 416: "Range Not Satisfiable"
        case 417: "Expectation Failed"
        case 421: "Misdirected Request"
        case 422: "Unprocessable Content"
        case 423: "Locked"
        case 424: "Failed Dependency"
        case 425: "Too Early"
        case 426: "Upgrade Required"
        case 428: "Precondition Required"
        case 429: "Too Many Requests"
        case 431: "Request Header Fields Too Large"
        case 451: "Unavailable For Legal Reasons"
        default: ""
        }
    }

    private static func serverError(_ status: UInt16) -> String {
        switch status {
        case 500: "Internal Server Error"
        case 501: "Not Implemented"
        case 502: "Bad Gateway"
        case 503: "Service Unavailable"
        case 504: "Gateway Timeout"
        case 505: "HTTP Version Not Supported"
        case 506: "Variant Also Negotiates"
        case 507: "Insufficient Storage"
        case 508: "Loop Detected"
        case 511: "Network Authentication Required"
        default: ""
        }
    }
}

/// Properties of status codes that matter to a cache.
package enum StatusRules {
    /// Returns true if a lifetime may be guessed for this status (RFC 9110 §15.1).
    ///
    /// 206 is left out, because it is never stored as a whole response.
    package static func isHeuristicallyCacheable(_ status: UInt16) -> Bool {
        switch status {
        case 200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501: true
        default: false
        }
    }

    /// Returns true if RFC 9110 §15 defines the status and this cache meets its requirements (RFC
    /// 9111 §3, §5.2.2.3).
    package static func isUnderstood(_ status: UInt16) -> Bool {
        switch status {
        case 200...205, 300...303, 305, 307, 308: true
        case 400...417, 421, 422, 426, 500...505: true
        default: false
        }
    }

    /// Returns true if the status depends on request fields that select no variant: preconditions
    /// and Range (RFC 9110 §15.5.13, §15.5.17).
    package static func isRequestSpecific(_ status: UInt16) -> Bool {
        status == 412 || status == 416
    }

    /// Returns true if the status says nothing about the resource: the server failed, or was not
    /// ready for this request (RFC 9110 §15.5.9 and §15.6, RFC 8470 §5.2, RFC 6585 §4).
    package static func isTransient(_ status: UInt16) -> Bool {
        status >= 500 || status == 408 || status == 425 || status == 429
    }

    /// Returns true if the origin failed, so that a stored response may be sent stale (RFC 5861
    /// §4).
    package static func isFailure(_ status: UInt16) -> Bool {
        switch status {
        case 500, 502, 503, 504: true
        default: false
        }
    }
}
