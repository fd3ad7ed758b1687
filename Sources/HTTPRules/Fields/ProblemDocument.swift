import Ground

/// The description of an error for a client (RFC 9457).
package struct ProblemDocument: Hashable, Sendable {
    /// The media type of ``append(to:)``.
    package static let contentType: StaticString = "application/problem+json"

    /// The HTTP status code.
    package var status: UInt16
    /// The prefix of the member `type`; ``name`` follows it.
    package static let typePrefix = "urn:nuthatch:problem:"

    /// A stable name of lower-case letters and hyphens, for programs.
    package var name: String
    /// The kind of problem, the same for every occurrence.
    package var title: String
    /// The specific fault, its location, and the allowed values; empty if there is nothing to add.
    package var detail: String
    /// A further member, a list of texts for programs (RFC 9457 §3.2); `nil` for none.
    package var list: List?

    /// An extension member that holds a list of texts.
    package struct List: Hashable, Sendable {
        /// The name of the member, in lower case with underscores.
        package var name: String
        /// The texts in the list.
        package var texts: [String]

        /// Creates a member from its parts.
        package init(_ name: String, _ texts: [String]) {
            self.name = name
            self.texts = texts
        }
    }

    /// Creates a problem from its parts, without a list.
    package init(status: UInt16, name: String, title: String, detail: String = "") {
        self.status = status
        self.name = name
        self.title = title
        self.detail = detail
    }

    /// Appends the document as JSON (RFC 8259).
    package func append(to bytes: inout [UInt8]) {
        bytes.append(contentsOf: "{\"type\":".utf8)
        JSONText.append(Self.typePrefix + name, to: &bytes)
        bytes.append(contentsOf: ",\"title\":".utf8)
        JSONText.append(title, to: &bytes)
        bytes.append(contentsOf: ",\"status\":".utf8)
        ASCII.append(UInt64(status), to: &bytes)
        if !detail.isEmpty {
            bytes.append(contentsOf: ",\"detail\":".utf8)
            JSONText.append(detail, to: &bytes)
        }
        if let list {
            bytes.append(UInt8(ascii: ","))
            JSONText.append(list.name, to: &bytes)
            bytes.append(contentsOf: ":[".utf8)
            for (index, text) in list.texts.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                JSONText.append(text, to: &bytes)
            }
            bytes.append(UInt8(ascii: "]"))
        }
        bytes.append(contentsOf: "}\n".utf8)
    }
}

extension ProblemDocument {
    /// Creates the response to a malformed target of the image API.
    ///
    /// - Parameters:
    ///   - refusal: why the target was refused.
    ///   - bytes: the bytes that the target was parsed from.
    package init(_ refusal: ImageTargetRefusal, in bytes: Span<UInt8>) {
        let usage = "Ask for /v1/image?url=<absolute URL, percent-encoded>."
        switch refusal {
        case .urlMissing:
            self.init(name: "url-missing", detail: "The parameter url is missing. " + usage)
        case .urlEmpty:
            self.init(name: "url-missing", detail: "The parameter url is empty. " + usage)
        case .urlDuplicated:
            self.init(
                name: "url-doubled",
                detail: "The parameter url is given twice; it is allowed once. " + usage)
        case .parameterUnknown(let name):
            let text = Self.printable(bytes, at: name.range)
            self.init(
                name: "parameter-unknown",
                detail: "The parameter \"\(text)\" is unknown; only url is allowed. If it is "
                    + "part of the image's URL, percent-encode the URL: & is written %26.")
        }
    }

    /// Creates the response to a URL that cannot be fetched.
    package init(_ refusal: URLRefusal) {
        self.init(status: refusal.status, name: refusal.name, detail: refusal.message)
    }

    private init(status: UInt16 = 400, name: String, detail: String) {
        self.init(
            status: status, name: name, title: "The request does not name an image", detail: detail)
    }

    /// Returns at most 40 bytes as readable text; bytes that are not printable ASCII become `?`.
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
    /// The status code: 414 for length (RFC 9110 §15.5.15), 400 for everything else.
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

    /// The fault, its offset, and the allowed values.
    package var message: String {
        switch self {
        case .empty: "The URL is empty; an absolute http or https URL is required."
        case .tooLong(let max): "The URL is longer than \(max) bytes."
        case .valueEscape(let offset):
            "The value of url has a % without two hexadecimal digits at byte \(offset); "
                + "a literal % is written %25."
        case .escape(let offset):
            "The URL has a % without two hexadecimal digits at byte \(offset); "
                + "in a URL a literal % is written %25, which is percent-encoded once more in the "
                + "value of url."
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
        case .ipv6(let offset): "The text in brackets at byte \(offset) is not an IPv6 address."
        case .ipv6Zone(let offset):
            "The IPv6 address has a zone at byte \(offset); none is allowed."
        case .port(let offset):
            "The port at byte \(offset) is not a number of 1 to 65535."
        default: ""
        }
    }
}

extension ProblemDocument {
    /// Creates the response to a PURGE that is not permitted.
    ///
    /// The status is 401 if a token would help and none was sent, which requires a challenge (RFC
    /// 9110 §15.5.2), else 403.
    package init(_ refusal: PurgePermission.Refusal) {
        self.init(
            status: refusal.needsToken ? 401 : 403, name: "purge-not-allowed",
            title: "PURGE is not allowed here",
            detail: refusal.message)
    }

    /// The response to PURGE without a site where no client may purge; send it with Allow
    /// (RFC 9110 §15.5.6).
    package static let purgeNotConfigured = ProblemDocument(
        status: 405, name: "purge-not-configured", title: "PURGE is not supported here",
        detail: "No network and no token is allowed to purge on this port. Nothing was purged, and "
            + "the origin was not contacted.")

    /// Creates the response to an invalid PURGE.
    package init(_ fault: PurgeCommandFault) {
        let detail =
            switch fault {
            case .softPurgeValue:
                "Fastly-Soft-Purge is 1 for a soft purge, 0 or missing for a hard one."
            case .tooManyTags:
                "The tags are too many or too long: \(PurgeCommand.tagsMax) of "
                    + "\(CacheTags.tagBytesMax) bytes are allowed, and "
                    + "\(CacheTags.bytesMax) bytes in total."
            case .tagPattern:
                "The tags are not a list separated by |, commas or spaces; other regular "
                    + "expressions are not supported."
            case .target(let fault): fault.message
            }
        self.init(
            status: 400, name: "purge-invalid", title: "The purge is not valid",
            detail: detail + " Nothing was purged.")
    }
}

extension ProblemDocument {
    /// Creates the response to a request whose signature is refused.
    ///
    /// The status is 403 if there is no signature or no key produced it, 410 if it has expired, 400
    /// if it cannot be parsed.
    package init(_ refusal: SignatureRefusal) {
        switch refusal {
        case .unsigned:
            self.init(
                status: 403, name: "url-unsigned", title: "The URL is not signed",
                detail: "Only signed URLs are served here: ?signature=… or "
                    + "?expires=<seconds since 1970>&signature=… at the end of the query.")
        case .forged:
            self.init(
                status: 403, name: "url-signature", title: "The URL's signature is wrong",
                detail: "None of this node's keys gives this signature: the URL or its expires was "
                    + "changed after it was signed, or it was signed with another key.")
        case .expired(let at):
            self.init(
                status: 410, name: "url-expired", title: "The signed URL has expired",
                detail: "Its signature is correct, but was valid until \(at.seconds) (seconds "
                    + "since 1970). A new URL must be signed.")
        case .malformed(let fault):
            self.init(
                status: 400, name: "url-signature-malformed",
                title: "The URL's signature cannot be read", detail: fault.message)
        }
    }
}

extension SignatureFault {
    /// The fault and the allowed values.
    package var message: String {
        switch self {
        case .signatureNotLast:
            "The parameter signature must be the last of the query; other text follows it."
        case .signatureDuplicated: "The parameter signature is given twice; it is allowed once."
        case .signatureSyntax:
            "The parameter signature is not \(Signature.textBytesCount) letters of "
                + "base64url without "
                + "padding, or its last letter cannot end \(Signature.bytesCount) bytes."
        case .expiresMisplaced:
            "The parameter expires must directly precede the parameter signature."
        case .expiresDuplicated: "The parameter expires is given twice; it is allowed once."
        case .expiresSyntax:
            "The parameter expires is not a number of 1 to \(SignedTarget.expiryMax.seconds) in "
                + "decimal digits without leading zeros: seconds since 1970, not milliseconds."
        }
    }
}
