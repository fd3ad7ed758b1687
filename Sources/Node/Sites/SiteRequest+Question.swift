import Ground
import HTTPRules
import Origin
import Store
import Wire

/// What an origin is asked.
extension SiteRequest {
    enum Question {
        case request(OriginFetchRequest)
        /// It is not asked.
        case refused(Problem)
    }

    /// Asks for the answer, or whether one of the stored `entries` still holds.
    func question(about entries: [Resident], for run: FillRun, through node: NodeCore) -> Question {
        guard let origin = plan.origin else { return imageQuestion(about: entries, run) }
        var validation = Validation()
        for entry in entries { validation.add(entry.head, facts: entry.facts) }
        if let relayed {
            let head = RequestForwarder.forward(
                told: relayed.head, rules: plan.requestRules, validation: validation,
                passage: passage(through: node), causeLines: run.cause.lines(span: .newSpan()))
            return .request(request(to: origin, head, run))
        }
        let bytes = lines.bytes
        let outcome = RequestForwarder.forward(
            asked, lines.lines, in: bytes.span, rules: plan.requestRules,
            purpose: mode == .whole ? .store(validation) : .pass,
            takesTrailers: mode != .whole && lines.takesTrailers, passage: passage(through: node),
            causeLines: run.cause.lines(span: .newSpan()))
        switch outcome {
        case .send(let head): return .request(request(to: origin, head, run))
        case .loop, .answerHere: return .refused(.loop)
        case .outside: return .refused(.outsideSite)
        }
    }

    private func request(
        to origin: OriginAuthority, _ head: [UInt8], _ run: FillRun
    ) -> OriginFetchRequest {
        let name = asked.method
        let isSafe = MethodRules(name.span, at: 0..<name.count).contains(.isSafe)
        var request = OriginFetchRequest(
            origin: origin, method: method, head: head, body: body, isSafeToRetry: isSafe)
        // What passes is bounded by its pieces, and by the time that nothing moves.
        request.bodyBytesMax = .max
        request.totalLimit = Self.totalLimit
        request.holders = run.client.map { [$0] } ?? []
        request.upgrade = asked.upgrade
        if !request.upgrade.isEmpty { request.holders.append(.upgrades) }
        if !body.isEmpty { request.holders.append(.uploads) }
        return request
    }

    private static let totalLimit = Interval.seconds(86_400)

    private func imageQuestion(about entries: [Resident], _ run: FillRun) -> Question {
        var validation = Validation()
        for entry in entries {
            validation.add(entry.head, facts: entry.facts, needsStrongDate: true)
        }
        let request = plan.request(for: key, negotiation, validation.lines, cause: run.cause)
        // What is stored is not believed so far that it could end the node.
        guard var request else {
            return .refused(.origin(.malformed("no request can be made")))
        }
        request.holders = run.client.map { [$0] } ?? []
        return .request(request)
    }
}
