import Admin
import Ground
import HTTPRules
import Logging
import Synchronization
import Wire

/// Who asks the admin port, and whether they may.
extension Door {
    /// The role of who asks for `operation`; nil if they may not, which they have been told.
    func admit(_ request: PendingRequest, _ bytes: Span<UInt8>, to operation: AdminOperation)
        -> AdminRole?
    {
        // Over TLS nobody gets as far without a certificate.
        let caller = AdminCaller(
            request, host: bytes.copy(parser.host.range), from: client?.address,
            hasCertificate: isSecure && settings.adminTLS != nil)
        let now = SystemClock.now()
        let verdict = settings.adminAccess.verdict(on: caller, for: operation.role)
        let admission = hall.node.adminGate.withLock {
            $0.admit(verdict, of: caller, to: operation, at: now)
        }
        switch admission {
        case .admitted(let role):
            if operation.role != nil { client?.isProven = true }
            return role
        case .refused(let refusal, delay: .zero):
            if refusal.isFailedAttempt { log(refusalOf: caller, cause(request)) }
            refuse(refusal)
        case .refused(let refusal, let delay):
            // The connection may give up its place for a newcomer meanwhile, and is not used again.
            closesAfterAnswer = true
            isAnswering = true
            deadline = now + delay
            heldRefusal = refusal
        }
        return nil
    }

    /// Answers what was held back.
    func endHeldRefusal() {
        guard let refusal = heldRefusal else { return }
        heldRefusal = nil
        refuse(refusal)
    }

    private func log(refusalOf caller: AdminCaller, _ cause: RequestCause) {
        hall.node.logger.warning(
            "an operator's token was refused",
            metadata: cause.metadata([
                "client": "\(caller.address.map { "\($0.unmapped)" } ?? "-")"
            ]))
    }

    private func refuse(_ refusal: AdminRefusal) {
        var problem = Problem(refusal.problem)
        problem.retryAfterSeconds = refusal.retryAfterSeconds
        let challenge = refusal.challenge.map { "WWW-Authenticate: \($0)\r\n" } ?? ""
        answerProblem(problem, fields: challenge)
    }
}

extension AdminCaller {
    /// Who has sent `request` to `host`.
    fileprivate init(
        _ request: PendingRequest, host: [UInt8], from address: IPAddress?, hasCertificate: Bool
    ) {
        self.init(
            address: address, proof: hasCertificate ? .certificate : .none, authority: host)
        let head = request.head.span
        for line in request.lines {
            if line.id == .authorization { proof = .malformed }
            if head.holdsIgnoringCase("origin", at: line.name.range) {
                origin = head.copy(line.value.range)
            } else if head.holdsIgnoringCase("sec-fetch-site", at: line.name.range) {
                fetchSite = head.copy(line.value.range)
            }
        }
        if let token = BearerToken.find(request.lines, in: head) {
            proof = .token(TokenDigest(ofToken: token))
        }
    }
}
