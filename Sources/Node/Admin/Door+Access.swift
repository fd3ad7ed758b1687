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
        let caller = caller(request, bytes)
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

    private func caller(_ request: PendingRequest, _ bytes: Span<UInt8>) -> AdminCaller {
        let head = request.head.span
        var caller = AdminCaller(
            address: client?.address, proof: .none, authority: bytes.copy(parser.host.range))
        for line in request.lines {
            if line.id == .authorization { caller.proof = .malformed }
            if head.holdsIgnoringCase("origin", at: line.name.range) {
                caller.origin = head.copy(line.value.range)
            } else if head.holdsIgnoringCase("sec-fetch-site", at: line.name.range) {
                caller.fetchSite = head.copy(line.value.range)
            }
        }
        if let token = BearerToken.find(request.lines, in: head) {
            caller.proof = .token(TokenDigest(ofToken: token))
        } else if isSecure, settings.adminTLS != nil, caller.proof == .none {
            // Nobody gets as far without one.
            caller.proof = .certificate
        }
        return caller
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
