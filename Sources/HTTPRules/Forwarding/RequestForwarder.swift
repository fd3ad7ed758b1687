package import Ground

/// A client's request without its fields, as far as an origin is told of it.
package struct ForwardedRequest: Hashable, Sendable {
    /// The method as it was sent.
    package var method: [UInt8]
    /// Path and query, verbatim or without a site's ignored parameters; or `*` (RFC 9112 §3.2.4).
    package var target: [UInt8]
    /// The authority that was asked for; empty if an old client named none.
    package var host: [UInt8]
    /// The client's address, or that which a proxy in front is believed to have seen.
    package var client: IPAddress?
    /// Who connected: the client, or the proxy in front.
    package var remoteAddress: IPAddress?
    /// It came by TLS, or a proxy in front is believed that it did.
    package var isSecure: Bool
    /// The version of HTTP that it came in, as Via has it (RFC 9110 §7.6.3): `1.0`, `1.1`, `2`.
    package var version: String
    /// The protocols that the origin may switch to, as Upgrade lists them; empty for none.
    package var upgrade: [UInt8] = []

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
    /// GET or HEAD, whose answers are selected among representations (RFC 9110 §9.3.1, §9.3.2).
    var isRetrieval: Bool {
        method.elementsEqual("GET".utf8) || method.elementsEqual("HEAD".utf8)
    }
}

/// Writes a client's request for a site's origin (RFC 9110 §7.6).
///
/// An expectation is not passed on: this node says 100 itself before it reads a body (RFC 9110
/// §10.1.1).
package enum RequestForwarder {
    /// What the origin is asked for.
    package enum Purpose: Hashable, Sendable {
        /// The client's request as it is.
        case pass
        /// The whole answer, to be stored: the client's conditions and range are answered from it
        /// here. Asks for validation if there are validators (RFC 9111 §4.3.1).
        case store(Validation)
    }

    /// What is to be done with a request.
    package enum Outcome: Hashable, Sendable {
        /// Send this head: without the fields that frame a body, and without the empty line.
        case send([UInt8])
        /// Max-Forwards is used up: this node is the one that was asked (RFC 9110 §7.6.2).
        case respondLocally
        /// It came through here already, or through too many others (RFC 9110 §7.6.3, RFC 8586);
        /// `508` says so.
        case loopDetected
        /// Its path may lead above the path of the site's origin; `400` says so.
        case outsideBasePath
    }

    /// Writes the request's head for the origin, unless it is not to be passed on at all.
    ///
    /// - Parameters:
    ///   - request: what is asked.
    ///   - lines: the client's field lines.
    ///   - bytes: what the extents of `lines` lie in.
    ///   - rules: of the site.
    ///   - purpose: what becomes of the answer.
    ///   - acceptsTrailers: the client said that it reads trailer fields, and they are passed on
    ///     (RFC 9110 §6.5.1).
    ///   - loopIdentifier: of the request through this process, for CDN-Loop; nil adds nothing.
    ///   - correlationLines: those of a ``RequestCorrelation``, in place of the client's of the
    ///     same names unless `rules` decide about those; nil leaves the client's as they are.
    /// - Returns: what is to be done.
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
        // Both are of this hop, which Connection has to say (RFC 9110 §7.8, §10.1.4).
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

    /// The fields that the origin is told of when the answer is to be stored: what its Vary speaks
    /// of (RFC 9111 §4.1).
    ///
    /// The extents of the lines lie in the bytes given back. Without validators and without our
    /// Via and CDN-Loop.
    package static func forwardedFields(
        _ request: ForwardedRequest, _ lines: [FieldLine], in bytes: Span<UInt8>,
        rules: RequestFieldRules
    ) -> (lines: [FieldLine], bytes: [UInt8]) {
        var head = HeadBuilder(rules: rules, isStored: true, forwards: .unlimited, causeLines: nil)
        head.appendRequestLine(request)
        head.append(lines, in: bytes, of: request)
        return (SerializedHead.lines(head.bytes), head.bytes)
    }

    /// Writes the head for the origin of a request that another node has forwarded so far: what
    /// ``told(_:_:in:rules:)`` gave there, with what is this node's to add.
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

    /// Writes a GET of this node's own, up to and with the empty line; `userAgent`, if it is not
    /// nil, is said unless one of `fields` says another.
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

    /// How the head begins of a GET that is forwarded for the answer of a site under `key`: request
    /// line and Host.
    ///
    /// - Returns: nil if `key` is no such key, or that of a variant, or its path may lead above
    ///   that of the origin.
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

    /// A head that is being written.
    private struct HeadBuilder {
        let rules: RequestFieldRules
        /// The answer is to be stored whole.
        let isStoring: Bool
        let maxForwards: MaxForwards
        /// What the request is called here; nil for what the client calls it.
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

        /// Request line and Host (RFC 9112 §3).
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

        /// The client's directives but `only-if-cached`, which was for this cache (RFC 9111
        /// §5.2.1.7).
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

        /// The directive with or without an argument, which it has none of.
        private static func isOnlyIfCached(_ bytes: Span<UInt8>, _ element: Range<Int>) -> Bool {
            let end = FieldSyntax.find(UInt8(ascii: "="), in: bytes, at: element)
            let name = FieldSyntax.trimmed(bytes, at: element.lowerBound..<end)
            return bytes.matchesIgnoringCase("only-if-cached", at: name)
        }

        private mutating func appendMaxForwards(_ line: FieldLine, in source: Span<UInt8>) {
            guard case .remaining(let number) = maxForwards else { return }
            bytes.append(source, at: line.name.range)
            bytes.append(contentsOf: ": ".utf8)
            ASCII.append(number, to: &bytes)
            bytes.appendLineEnd()
        }
    }
}

/// How often an OPTIONS may still be passed on (RFC 9110 §7.6.2); TRACE is not passed on at all.
private enum MaxForwards: Hashable {
    /// It does not say, in one number; or the method is none that this counts for.
    case unlimited
    case exhausted
    /// What the next one is told.
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
