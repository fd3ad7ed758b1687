import Ground

/// The fields that describe the client and its request as seen before it was forwarded.
enum ForwardedField: Hashable {
    case xFor
    case xProto
    case xHost
    /// The field Forwarded (RFC 7239).
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

    /// Appends this field's line, if it is to be sent.
    ///
    /// All values are joined into one line, because some origins read only one. The client's values
    /// for host and scheme are left out: they would end up in responses that others receive.
    ///
    /// - Parameters:
    ///   - rule: how the client's lines and what this node saw are combined.
    ///   - request: the request as this node saw it.
    ///   - lines: the client's lines that are forwarded; their extents lie in `source`.
    ///   - source: the client's head.
    ///   - bytes: the buffer to append to.
    func append(
        _ rule: RequestFieldRules.ForwardedRule, _ request: ForwardedRequest,
        _ lines: [FieldLine], in source: Span<UInt8>, to bytes: inout [UInt8]
    ) {
        let sent = lines.filter {
            $0.id == .other && ForwardedField(source, at: $0.name.range) == self
        }
        // Forwarded is sent only to origins that already receive it (RFC 7239 §4).
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

    /// Returns true if the operator removes or sets this field, or it is forwarded unchanged.
    func isConfigured(by rules: RequestFieldRules) -> Bool {
        let name = Array(name.utf8)
        let bytes = name.span
        return rules.removed.contains(bytes, at: name.indices)
            || rules.overriddenLines.contains(bytes, at: name.indices)
            || isForwardedUnchanged(by: rules)
    }

    /// Returns true if the client's lines are forwarded unchanged: the operator names the field, or
    /// adds nothing to X-Forwarded-For.
    func isForwardedUnchanged(by rules: RequestFieldRules) -> Bool {
        if self == .xFor { return rules.forwarded == .unchanged }
        let name = Array(name.utf8)
        return rules.forwardedNames.contains(name.span, at: name.indices)
    }

    /// Returns this node's value for the field; empty if it has none.
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
                // A token cannot hold a colon, so the value is quoted.
                bytes.append(contentsOf: ";host=\"".utf8)
                bytes.append(contentsOf: request.host)
                bytes.append(UInt8(ascii: "\""))
            }
            bytes.append(contentsOf: ";proto=\(request.scheme)".utf8)
        }
        return bytes
    }

    /// Appends a node identifier: IPv6 addresses are quoted, a missing address is `unknown` (RFC
    /// 7239 §6).
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
