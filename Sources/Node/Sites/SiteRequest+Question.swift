import Ground
import HTTPRules
import Origin
import Store
import Wire

/// What an origin is asked.
extension SiteRequest {
    enum OriginRequestResult {
        case request(OriginFetchRequest)
        /// It is not asked.
        case refused(Problem)
    }

    /// Asks for the answer, or whether one of the stored `entries` still holds.
    func originRequest(
        validating entries: [MemoryEntry], for run: ActiveFetch, through node: NodeCore
    ) -> OriginRequestResult {
        guard let origin = policy.origin else { return imageOriginRequest(about: entries, run) }
        var validation = Validation()
        for entry in entries { validation.add(entry.head, metadata: entry.metadata) }
        if let relayed {
            let head = RequestForwarder.forward(
                fields: relayed.head, rules: policy.requestFieldRules, validation: validation,
                loopIdentifier: loopIdentifier(through: node),
                correlationLines: run.correlation.fieldLines(span: .randomSpanID()))
            return .request(request(to: origin, head, run))
        }
        let bytes = clientFields.bytes
        let outcome = RequestForwarder.forward(
            forwardedRequest, clientFields.lines, in: bytes.span, rules: policy.requestFieldRules,
            purpose: mode == .whole ? .store(validation) : .pass,
            acceptsTrailers: mode != .whole && clientFields.acceptsTrailers,
            loopIdentifier: loopIdentifier(through: node),
            correlationLines: run.correlation.fieldLines(span: .randomSpanID()))
        switch outcome {
        case .send(let head): return .request(request(to: origin, head, run))
        case .loopDetected, .respondLocally: return .refused(.loopDetected)
        case .outsideBasePath: return .refused(.pathOutsideSite)
        }
    }

    private func request(
        to origin: OriginAuthority, _ head: [UInt8], _ run: ActiveFetch
    ) -> OriginFetchRequest {
        let name = forwardedRequest.method
        let isSafe = MethodProperties(name.span, at: 0..<name.count).contains(.isSafe)
        var request = OriginFetchRequest(
            origin: origin, method: method, head: head, body: body, isSafeToRetry: isSafe)
        // What passes is bounded by its pieces, and by the time that nothing moves.
        request.bodyBytesMax = .max
        request.totalLimit = Self.totalLimit
        request.quotaHolders = run.client.map { [$0] } ?? []
        request.upgrade = forwardedRequest.upgrade
        if !request.upgrade.isEmpty { request.quotaHolders.append(.upgrades) }
        if !body.isEmpty { request.quotaHolders.append(.uploads) }
        return request
    }

    private static let totalLimit = Interval.seconds(86_400)

    private func imageOriginRequest(about entries: [MemoryEntry], _ run: ActiveFetch)
        -> OriginRequestResult
    {
        var validation = Validation()
        for entry in entries {
            validation.add(entry.head, metadata: entry.metadata, needsStrongDate: true)
        }
        let request = policy.request(
            for: key, negotiation, validation.lines, cause: run.correlation)
        // What is stored is not believed so far that it could end the node.
        guard var request else {
            return .refused(.originFailed(.malformed("no request can be made")))
        }
        request.quotaHolders = run.client.map { [$0] } ?? []
        return .request(request)
    }
}
