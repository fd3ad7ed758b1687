import Ground

extension ProblemDocument {
    /// The answer to a target of the image API that is refused; `bytes` are those that it was
    /// parsed from.
    package init(_ refusal: ImageTargetRefusal, in bytes: Span<UInt8>) {
        let usage = "Ask for /v1/image?url=<absolute URL, percent-encoded>."
        switch refusal {
        case .urlMissing:
            self.init(name: "url-missing", detail: "There is no parameter url. " + usage)
        case .urlEmpty:
            self.init(name: "url-missing", detail: "The parameter url is empty. " + usage)
        case .urlDuplicated:
            self.init(
                name: "url-doubled",
                detail: "The parameter url comes twice; it is allowed once. " + usage)
        case .parameterUnknown(let name):
            let text = Self.printable(bytes, at: name.range)
            self.init(
                name: "parameter-unknown",
                detail: "The parameter \"\(text)\" is not known; only url is. If it is part of the "
                    + "image's URL, percent-encode the URL: & is written %26.")
        }
    }

    /// The answer to a URL that names nothing which can be fetched.
    package init(_ refusal: URLRefusal) {
        self.init(status: refusal.status, name: refusal.name, detail: refusal.message)
    }

    private init(status: UInt16 = 400, name: String, detail: String) {
        self.init(
            status: status, name: name, title: "The request does not name an image", detail: detail)
    }

    /// At most 40 bytes for a person to recognise; what is not printable ASCII is shown as `?`.
    private static func printable(_ bytes: Span<UInt8>, at range: Range<Int>) -> String {
        var text = ""
        for index in range.prefix(40) {
            let byte = bytes[index]
            let shown = 0x20..<0x7F ~= byte ? byte : UInt8(ascii: "?")
            text.unicodeScalars.append(Unicode.Scalar(shown))
        }
        return range.count > 40 ? text + "…" : text
    }
}

extension URLRefusal {
    /// 414 for length (RFC 9110 §15.5.15), 400 for everything else.
    package var status: UInt16 {
        if case .tooLong = self { 414 } else { 400 }
    }

    /// The stable name of the problem.
    package var name: String {
        switch self {
        case .empty: "url-missing"
        case .tooLong: "url-too-long"
        case .valueEscape, .escape: "url-escape"
        case .control: "url-control-byte"
        case .scheme: "url-scheme"
        case .userInfo: "url-user-info"
        case .hostEmpty, .hostNotASCII, .hostByte, .hostLabel, .hostTooLong, .hostNumber,
            .ipv6, .ipv6Zone:
            "url-host"
        case .port: "url-port"
        }
    }

    /// What is wrong, where, and what is allowed.
    package var message: String {
        switch self {
        case .empty: "The URL is empty; an absolute http or https URL is wanted."
        case .tooLong(let max): "The URL is longer than \(max) bytes, the most that is allowed."
        case .valueEscape(let offset):
            "The value of url has a % without two hexadecimal digits at byte \(offset); "
                + "a % that stands for itself is written %25."
        case .escape(let offset):
            "The URL has a % without two hexadecimal digits at byte \(offset); "
                + "in a URL a % that stands for itself is written %25, and that percent-encoded "
                + "once more as the value of url."
        case .control(let offset, let byte):
            "The URL has the control byte \(byte) at byte \(offset); none is allowed."
        case .scheme: "The URL must begin with http:// or https://."
        case .userInfo(let offset):
            "The URL has a user name or password at byte \(offset); none is allowed."
        default: hostMessage
        }
    }

    private var hostMessage: String {
        switch self {
        case .hostEmpty(let offset): "The URL has no host at byte \(offset)."
        case .hostNotASCII(let offset):
            "The host has a character that is not ASCII at byte \(offset); write the name in "
                + "punycode (xn--…)."
        case .hostByte(let offset, let byte):
            "The host has the byte \(byte) at byte \(offset); letters, digits, '-', '_' and '.' "
                + "are allowed, or an IPv6 address in brackets."
        case .hostLabel(let offset):
            "The host has a label at byte \(offset) that is empty or longer than "
                + "\(HostName.labelBytesMax) bytes."
        case .hostTooLong(let offset):
            "The host at byte \(offset) is longer than \(HostName.bytesMax) bytes."
        case .hostNumber(let offset):
            "The host at byte \(offset) ends in a number and is not an IPv4 address; an address "
                + "is four decimal numbers of 0 to 255 without leading zeros."
        case .ipv6(let offset): "What is in brackets at byte \(offset) is not an IPv6 address."
        case .ipv6Zone(let offset):
            "The IPv6 address has a zone at byte \(offset); none is allowed."
        case .port(let offset):
            "The port at byte \(offset) is not a number of 1 to 65535."
        default: ""
        }
    }
}
