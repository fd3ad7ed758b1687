import Ground

/// The fields that say who asked, and how, before a message was passed on.
enum ForwardedField: Hashable {
    case xFor
    case xProto
    case xHost
    /// RFC 7239.
    case standard

    init?(_ bytes: Span<UInt8>, at name: Range<Int>) {
        switch name.count {
        case 9 where bytes.matchesIgnoringCase("forwarded", at: name): self = .standard
        case 15 where bytes.matchesIgnoringCase("x-forwarded-for", at: name): self = .xFor
        case 16 where bytes.matchesIgnoringCase("x-forwarded-host", at: name): self = .xHost
        case 17 where bytes.matchesIgnoringCase("x-forwarded-proto", at: name): self = .xProto
        default: return nil
        }
    }

    static let all: [ForwardedField] = [.xFor, .xProto, .xHost, .standard]

    private var name: String {
        switch self {
        case .xFor: "X-Forwarded-For"
        case .xProto: "X-Forwarded-Proto"
        case .xHost: "X-Forwarded-Host"
        case .standard: "Forwarded"
        }
    }

    /// Appends this field's line, if there is to be one.
    ///
    /// One line with everything: origins that look at one line only see all of it. What a client
    /// says of host and scheme is not in it: it would be in answers that others get.
    ///
    /// - Parameters:
    ///   - rule: how the client's lines and what this node saw are put together.
    ///   - request: what this node saw.
    ///   - lines: the client's lines that are passed on; their extents lie in `source`.
    ///   - source: the client's head.
    ///   - bytes: what is appended to.
    func append(
        _ rule: RequestFieldRules.ForwardedRule, _ request: ForwardedRequest,
        _ lines: [FieldLine], in source: Span<UInt8>, to bytes: inout [UInt8]
    ) {
        let sent = lines.filter {
            $0.id == .other && ForwardedField(source, at: $0.name.range) == self
        }
        // Nobody who does not know it is told of it (RFC 7239 §4).
        if self == .standard, sent.isEmpty { return }
        var members: [[UInt8]] = []
        if self == .xFor, rule == .added {
            members = sent.map { source.copy($0.value.range) }.filter { !$0.isEmpty }
        }
        let seen = observedValue(request, rule)
        if !seen.isEmpty { members.append(seen) }
        guard !members.isEmpty else { return }
        bytes.append(contentsOf: "\(name): ".utf8)
        bytes.append(contentsOf: members.joined(separator: ", ".utf8))
        bytes.appendLineEnd()
    }

    /// True if the operator decides about this field by name.
    func isConfigured(by rules: RequestFieldRules) -> Bool {
        let name = Array(name.utf8)
        let bytes = name.span
        return rules.removed.contains(bytes, at: name.indices)
            || rules.lines.contains(bytes, at: name.indices)
            || isForwardedUnchanged(by: rules)
    }

    /// True if the client's lines go on as they are: the operator names the field, or wants nothing
    /// added to X-Forwarded-For.
    func isForwardedUnchanged(by rules: RequestFieldRules) -> Bool {
        if self == .xFor { return rules.forwarded == .unchanged }
        let name = Array(name.utf8)
        return rules.forwardedNames.contains(name.span, at: name.indices)
    }

    /// What this node says in the field; empty if it knows nothing.
    private func observedValue(
        _ request: ForwardedRequest, _ rule: RequestFieldRules.ForwardedRule
    ) -> [UInt8] {
        var bytes: [UInt8] = []
        switch self {
        case .xFor: (rule == .added ? request.remoteAddress : request.client)?.append(to: &bytes)
        case .xProto: bytes.append(contentsOf: request.scheme.utf8)
        case .xHost: bytes.append(contentsOf: request.host)
        case .standard:
            bytes.append(contentsOf: "for=".utf8)
            Self.appendNode(request.client, to: &bytes)
            if !request.host.isEmpty {
                // A colon does not stand in a token.
                bytes.append(contentsOf: ";host=\"".utf8)
                bytes.append(contentsOf: request.host)
                bytes.append(UInt8(ascii: "\""))
            }
            bytes.append(contentsOf: ";proto=\(request.scheme)".utf8)
        }
        return bytes
    }

    /// A node identifier: an IPv6 address is quoted, one that is not known says so (RFC 7239 §6).
    private static func appendNode(_ address: IPAddress?, to bytes: inout [UInt8]) {
        switch address {
        case nil: bytes.append(contentsOf: "unknown".utf8)
        case .v4: address?.append(to: &bytes)
        case .v6:
            bytes.append(contentsOf: "\"[".utf8)
            address?.append(to: &bytes)
            bytes.append(contentsOf: "]\"".utf8)
        }
    }
}
