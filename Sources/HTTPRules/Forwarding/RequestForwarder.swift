package import Ground

/// The parts of a client's request, other than its fields, that are forwarded to an origin.
package struct ForwardedRequest: Hashable, Sendable {
    /// The method as received.
    package var method: [UInt8]
    /// The path and query, verbatim or without a site's ignored parameters; or `*` (RFC 9112
    /// §3.2.4).
    package var target: [UInt8]
    /// The requested authority; empty if an HTTP/1.0 client named none.
    package var host: [UInt8]
    /// The client's address, or the one that a trusted proxy in front reported; `nil` if unknown.
    package var client: IPAddress?
    /// The address that connected: the client's, or that of the proxy in front; `nil` if unknown.
    package var remoteAddress: IPAddress?
    /// True if the request came by TLS, or a trusted proxy in front reported so.
    package var isSecure: Bool
    /// The HTTP version in which the request was received, as written in Via (RFC 9110 §7.6.3):
    /// `1.0`, `1.1`, `2`.
    package var version: String
    /// The protocols that the origin may switch to, in the form of Upgrade; empty for none.
    package var upgrade: [UInt8] = []

    /// Creates a request from its parts, without Upgrade.
    package init(
        method: [UInt8], target: [UInt8], host: [UInt8], client: IPAddress?,
        remoteAddress: IPAddress?,
        isSecure: Bool = false, version: String = "1.1"
    ) {
        self.remoteAddress = remoteAddress
        self.method = method
        self.target = target
        self.host = host
        self.client = client
        self.isSecure = isSecure
        self.version = version
    }

    var scheme: String { isSecure ? "https" : "http" }
    /// True for GET and HEAD, whose responses are selected representations (RFC 9110 §9.3.1,
    /// §9.3.2).
    var isRetrieval: Bool {
        method.elementsEqual("GET".utf8) || method.elementsEqual("HEAD".utf8)
    }
}

/// Renders the head of a client's request for a site's origin (RFC 9110 §7.6).
///
/// An expectation is not forwarded: this node sends 100 itself before it reads a body (RFC 9110
/// §10.1.1).
package enum RequestForwarder {
    /// The use of the origin's response.
    package enum Purpose: Hashable, Sendable {
        /// The response is passed through, so the client's conditions, range and cache directives
        /// are forwarded.
        case pass
        /// The complete response is stored, and the client's conditions and range are applied to it
        /// here.
        ///
        /// The request is conditional if there are validators (RFC 9111 §4.3.1).
        case store(Validation)
    }

    /// How to proceed with a request.
    package enum Outcome: Hashable, Sendable {
        /// Send this head; it has no fields that frame a body and no empty line at the end.
        case send([UInt8])
        /// Respond as the recipient, because Max-Forwards is 0 (RFC 9110 §7.6.2).
        case respondLocally
        /// Send 508: the request passed here before, or through too many nodes (RFC 9110 §7.6.3,
        /// RFC 8586).
        case loopDetected
        /// Send 400: the path may lead above the base path of the site's origin.
        case outsideBasePath
    }

    /// Renders the request's head for the origin, unless the request must not be forwarded.
    ///
    /// - Parameters:
    ///   - request: the request without its fields.
    ///   - lines: the client's field lines; their extents lie in `bytes`.
    ///   - bytes: the bytes of the client's head.
    ///   - rules: the rules of the site.
    ///   - purpose: the use of the response.
    ///   - acceptsTrailers: true if the client accepts trailer fields and they are forwarded to it
    ///     (RFC 9110 §6.5.1).
    ///   - loopIdentifier: the identifier of the request for CDN-Loop; `nil` adds no line.
    ///   - correlationLines: the lines of a ``RequestCorrelation``, which replace the client's of
    ///     the same names unless `rules` configure those; `nil` keeps the client's.
    /// - Returns: how to proceed.
    package static func forward(
        _ request: ForwardedRequest, _ lines: [FieldLine], in bytes: Span<UInt8>,
        rules: RequestFieldRules, purpose: Purpose, acceptsTrailers: Bool = false,
        loopIdentifier: CDNLoop.LoopIdentifier? = nil, correlationLines: [FieldSetting]? = nil
    ) -> Outcome {
        let passages = max(Via.count(lines, in: bytes), CDNLoop.count(lines, in: bytes))
        guard passages < rules.hopsMax else { return .loopDetected }
        if let loopIdentifier, CDNLoop.contains(loopIdentifier, lines, in: bytes) {
            return .loopDetected
        }
        if !rules.basePath.isEmpty, TargetPath.escapesBase(request.target) {
            return .outsideBasePath
        }
        let forwards = MaxForwards(request.method, lines, in: bytes)
        if forwards == .exhausted { return .respondLocally }
        var rules = rules
        if !request.isRetrieval {
            rules.normalisesAccept = false
            rules.normalisesAcceptEncoding = false
        }
        var head = HeadBuilder(
            rules: rules, isStored: purpose != .pass, forwards: forwards,
            causeLines: correlationLines)
        head.appendRequestLine(request)
        head.append(lines, in: bytes, of: request)
        if case .store(let validation) = purpose {
            for line in validation.lines { head.bytes.appendLine(line) }
        }
        // Both are hop-by-hop, so Connection must name them (RFC 9110 §7.8, §10.1.4).
        if !request.upgrade.isEmpty {
            head.bytes.append(contentsOf: "Upgrade: ".utf8)
            head.bytes.append(contentsOf: request.upgrade)
            head.bytes.append(contentsOf: "\r\nConnection: Upgrade\r\n".utf8)
        } else if acceptsTrailers {
            head.bytes.append(contentsOf: "TE: trailers\r\nConnection: TE\r\n".utf8)
        }
        if let loopIdentifier { CDNLoop.append(loopIdentifier, to: &head.bytes) }
        if rules.addsVia { Via.append(version: request.version, to: &head.bytes) }
        return .send(head.bytes)
    }

    /// Returns the fields that the origin receives if the response is to be stored, to which its
    /// Vary refers (RFC 9111 §4.1).
    ///
    /// Validators and this node's Via and CDN-Loop are not included.
    ///
    /// - Parameters:
    ///   - request: the request without its fields.
    ///   - lines: the client's field lines; their extents lie in `bytes`.
    ///   - bytes: the bytes of the client's head.
    ///   - rules: the rules of the site.
    /// - Returns: the lines, and the bytes that their extents lie in.
    package static func forwardedFields(
        _ request: ForwardedRequest, _ lines: [FieldLine], in bytes: Span<UInt8>,
        rules: RequestFieldRules
    ) -> (lines: [FieldLine], bytes: [UInt8]) {
        var head = HeadBuilder(rules: rules, isStored: true, forwards: .unlimited, causeLines: nil)
        head.appendRequestLine(request)
        head.append(lines, in: bytes, of: request)
        return (SerializedHead.lines(head.bytes), head.bytes)
    }

    /// Renders the head for the origin of a request that another node received.
    ///
    /// - Parameters:
    ///   - head: the bytes that ``forwardedFields(_:_:in:rules:)`` returned on that node.
    ///   - rules: the rules of the site.
    ///   - validation: the validators of stored responses.
    ///   - loopIdentifier: the identifier of the request for CDN-Loop; `nil` adds no line.
    ///   - correlationLines: the lines of a ``RequestCorrelation``, which replace those of the same
    ///     names unless `rules` configure them.
    /// - Returns: the bytes of the head without the empty line that ends it.
    package static func forward(
        fields head: [UInt8], rules: RequestFieldRules, validation: Validation,
        loopIdentifier: CDNLoop.LoopIdentifier?, correlationLines: [FieldSetting]
    ) -> [UInt8] {
        let source = head.span
        let told = SerializedHead.lines(head)
        var bytes = source.copy(0..<Int(told.first?.name.start ?? UInt32(head.count)))
        let own = correlationLines.filter { !rules.isConfigured($0) }
        for line in told
        where !RequestCorrelation.contains(line.id) || !own.contains(where: { $0.id == line.id }) {
            bytes.appendLine(line, of: source)
        }
        for line in own { bytes.appendLine(line) }
        for line in validation.lines { bytes.appendLine(line) }
        if let loopIdentifier { CDNLoop.append(loopIdentifier, to: &bytes) }
        if rules.addsVia { Via.append(version: "1.1", to: &bytes) }
        return bytes
    }

    /// Renders a GET that this node makes itself, including the empty line.
    ///
    /// - Parameters:
    ///   - target: the path and query.
    ///   - host: the value of Host.
    ///   - userAgent: the value of User-Agent, used unless one of `fields` sets it; `nil` for none.
    ///   - fields: further field lines.
    /// - Returns: the bytes of the whole head.
    package static func get(
        target: [UInt8], host: [UInt8], userAgent: String?, _ fields: [FieldSetting]
    ) -> [UInt8] {
        var bytes = Array("GET ".utf8) + target + Array(" HTTP/1.1\r\nHost: ".utf8) + host
        bytes.appendLineEnd()
        if let userAgent, !fields.contains(where: { $0.id == .userAgent }) {
            bytes.appendLine(FieldSetting(.userAgent, "User-Agent", Array(userAgent.utf8)))
        }
        for line in fields { bytes.appendLine(line) }
        bytes.appendLineEnd()
        return bytes
    }

    /// Returns the request line and Host of a GET forwarded for a site's response under `key`.
    ///
    /// - Returns: `nil` if `key` is not the key of a site's response over TLS or not, as `isSecure`
    ///   says, or is that of a variant, or if its path may lead above the base path of the origin.
    package static func requestLineAndHost(
        ofKey key: [UInt8], isSecure: Bool, rules: RequestFieldRules
    ) -> [UInt8]? {
        let mark = "#https".utf8
        guard key.starts(with: "//".utf8), key.suffix(mark.count).elementsEqual(mark) == isSecure
        else { return nil }
        let named = key.dropFirst(2).dropLast(isSecure ? mark.count : 0)
        guard let slash = named.firstIndex(of: UInt8(ascii: "/")), slash > named.startIndex,
            named.allSatisfy({ $0 > 0x20 && $0 != 0x7F && $0 != UInt8(ascii: "#") })
        else { return nil }
        let request = ForwardedRequest(
            method: Array("GET".utf8), target: Array(named[slash...]), host: Array(named[..<slash]),
            client: nil, remoteAddress: nil)
        guard rules.basePath.isEmpty || !TargetPath.escapesBase(request.target) else { return nil }
        var head = HeadBuilder(rules: rules, isStored: true, forwards: .unlimited, causeLines: nil)
        head.appendRequestLine(request)
        return head.bytes
    }

    /// The state of a head being rendered.
    private struct HeadBuilder {
        let rules: RequestFieldRules
        /// True if the complete response is to be stored.
        let isStoring: Bool
        let maxForwards: MaxForwards
        /// The correlation lines of this node; `nil` keeps the client's.
        let correlationLines: [FieldSetting]?
        var bytes: [UInt8] = []

        init(
            rules: RequestFieldRules, isStored: Bool, forwards: MaxForwards,
            causeLines: [FieldSetting]?
        ) {
            self.rules = rules
            self.isStoring = isStored
            self.maxForwards = forwards
            self.correlationLines = causeLines
        }

        /// Appends the request line, whose target begins with the origin's base path, and the Host
        /// that the rules name (RFC 9112 §3).
        mutating func appendRequestLine(_ request: ForwardedRequest) {
            bytes.reserveCapacity(512 + request.target.count)
            bytes.append(contentsOf: request.method)
            bytes.append(0x20)
            if !request.target.elementsEqual("*".utf8) {
                bytes.append(contentsOf: rules.basePath)
                // The path of an absolute URI may be empty (RFC 9110 §4.2.3).
                if request.target.first != UInt8(ascii: "/") { bytes.append(UInt8(ascii: "/")) }
            }
            bytes.append(contentsOf: request.target)
            bytes.append(contentsOf: " HTTP/1.1\r\nHost: ".utf8)
            switch rules.host {
            case .origin: bytes.append(contentsOf: rules.authority)
            case .client:
                bytes.append(contentsOf: request.host.isEmpty ? rules.authority : request.host)
            case .fixed(let host): bytes.append(contentsOf: host)
            }
            bytes.appendLineEnd()
        }

        /// Appends the client's forwarded lines, then those of the operator and of this node.
        mutating func append(
            _ lines: [FieldLine], in source: Span<UInt8>, of request: ForwardedRequest
        ) {
            let hop = HopByHop(lines, in: source)
            var kept: [FieldLine] = []
            for line in lines where !hop.contains(line, in: source) {
                guard rules.forwards(line, in: source) else { continue }
                kept.append(line)
                append(line, in: source)
            }
            for setting in rules.operatorLines(lines, in: source) { bytes.appendLine(setting) }
            for line in correlationLines ?? [] where !rules.isConfigured(line) {
                bytes.appendLine(line)
            }
            guard rules.forwarded != .unchanged else { return }
            for field in ForwardedField.all where !field.isConfigured(by: rules) {
                field.append(rules.forwarded, request, kept, in: source, to: &bytes)
            }
        }

        /// Appends a client's line, unless this node writes, evaluates or omits the field itself.
        private mutating func append(_ line: FieldLine, in source: Span<UInt8>) {
            switch line.id {
            case .host, .contentLength, .expect: return
            case .ifMatch, .ifModifiedSince, .ifNoneMatch, .ifRange, .ifUnmodifiedSince, .range:
                if isStoring { return }
            case .cacheControl:
                if isStoring { return appendCacheControl(line, in: source) }
            case _ where RequestCorrelation.contains(line.id):
                if correlationLines != nil { return }
            case .other:
                let name = line.name.range
                if source.matchesIgnoringCase("max-forwards", at: name) {
                    if maxForwards != .unlimited { return appendMaxForwards(line, in: source) }
                    guard rules.forwardedNames.contains(source, at: name) else { return }
                }
                if let field = ForwardedField(source, at: name),
                    !field.isForwardedUnchanged(by: rules)
                {
                    return
                }
            default: break
            }
            bytes.appendLine(line, of: source)
        }

        /// Appends the client's directives without `only-if-cached`, which was for this cache (RFC
        /// 9111 §5.2.1.7).
        private mutating func appendCacheControl(_ line: FieldLine, in source: Span<UInt8>) {
            var kept: [Range<Int>] = []
            var isWhole = true
            var cursor = line.value.range.lowerBound
            while let element = FieldSyntax.nextElement(
                source, at: line.value.range, cursor: &cursor)
            {
                if Self.isOnlyIfCached(source, element) {
                    isWhole = false
                } else {
                    kept.append(element)
                }
            }
            if isWhole { return bytes.appendLine(line, of: source) }
            guard let first = kept.first else { return }
            bytes.append(source, at: line.name.range)
            bytes.append(contentsOf: ": ".utf8)
            bytes.append(source, at: first)
            for element in kept.dropFirst() {
                bytes.append(contentsOf: ", ".utf8)
                bytes.append(source, at: element)
            }
            bytes.appendLineEnd()
        }

        /// Returns true for the directive, even with an argument, which it does not define.
        private static func isOnlyIfCached(_ bytes: Span<UInt8>, _ element: Range<Int>) -> Bool {
            let end = FieldSyntax.find(UInt8(ascii: "="), in: bytes, at: element)
            let name = FieldSyntax.trimmed(bytes, at: element.lowerBound..<end)
            return bytes.matchesIgnoringCase("only-if-cached", at: name)
        }

        /// Appends the line with the number to forward; nothing without one.
        private mutating func appendMaxForwards(_ line: FieldLine, in source: Span<UInt8>) {
            guard case .remaining(let number) = maxForwards else { return }
            bytes.append(source, at: line.name.range)
            bytes.append(contentsOf: ": ".utf8)
            ASCII.append(number, to: &bytes)
            bytes.appendLineEnd()
        }
    }
}

/// The remaining number of times that an OPTIONS may be forwarded (RFC 9110 §7.6.2); TRACE is never
/// forwarded.
private enum MaxForwards: Hashable {
    /// The request has no Max-Forwards with one number, or the method is not OPTIONS.
    case unlimited
    case exhausted
    /// The value to forward, one less than received.
    case remaining(UInt64)

    init(_ method: [UInt8], _ lines: [FieldLine], in bytes: Span<UInt8>) {
        self = .unlimited
        guard method.elementsEqual("OPTIONS".utf8) else { return }
        let values = lines.filter {
            $0.id == .other && bytes.matchesIgnoringCase("max-forwards", at: $0.name.range)
        }
        guard values.count == 1, let number = bytes.decimal(at: values[0].value.range) else {
            return
        }
        self = number == 0 ? .exhausted : .remaining(number - 1)
    }
}
