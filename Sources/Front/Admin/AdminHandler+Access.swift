import Admin
import Ground
import HTTPRules
import Logging
import Platform
import Synchronization
import Wire

/// Access control of the admin port.
extension AdminHandler {
    /// Returns the role of the caller of `operation`, or `nil` if access is refused.
    ///
    /// A refusal is sent before the call returns, or later by ``deadlineReached()``. A caller with
    /// the role that the operation requires makes the connection an authenticated one.
    func admit(_ request: AdminRequest, to operation: AdminOperation) -> AdminRole? {
        // Over TLS, a connection without a client certificate fails in the handshake.
        let caller = AdminCaller(
            request.head, host: request.host, from: response.client?.address,
            hasCertificate: response.client?.isSecure == true && settings.adminTLS != nil)
        let now = SystemClock.now()
        let verdict = settings.adminAccess.authorize(caller, for: operation.role)
        let admission = context.node.adminGate.withLock {
            $0.admit(verdict, of: caller, to: operation, at: now)
        }
        switch admission {
        case .admitted(let role):
            if operation.role != nil { response.client?.isAuthenticated = true }
            return role
        case .refused(let refusal, delay: .zero):
            if refusal.isFailedAttempt { log(refusalOf: caller, response.cause(request.head)) }
            reject(refusal)
        case .refused(let refusal, let delay):
            // Meanwhile the connection may be preempted for a new one; it is not reused.
            response.closesAfterResponse = true
            response.wait(until: now + delay)
            delayedRefusal = refusal
        }
        return nil
    }

    /// Logs a failed authentication attempt.
    private func log(refusalOf caller: AdminCaller, _ cause: RequestCorrelation) {
        context.node.logger.warning(
            "admin token rejected",
            metadata: cause.metadata([
                "client": "\(caller.address.map { "\($0.unmapped)" } ?? "-")"
            ]))
    }

    /// Sends the refusal, with its challenge and Retry-After, if it has them.
    func reject(_ refusal: AdminAccessError) {
        var problem = Problem(refusal.problem)
        problem.retryAfterSeconds = refusal.retryAfterSeconds
        let challenge = refusal.challenge.map { "WWW-Authenticate: \($0)\r\n" } ?? ""
        response.sendProblem(problem, fields: challenge)
    }
}

extension AdminCaller {
    /// Creates the description of the caller that sent `request` to `host`.
    fileprivate init(
        _ request: BufferedRequest, host: [UInt8], from address: IPAddress?, hasCertificate: Bool
    ) {
        self.init(
            address: address, proof: hasCertificate ? .certificate : .none, authority: host)
        let head = request.head.span
        for line in request.lines {
            if line.id == .authorization { credential = .malformed }
            if head.matchesIgnoringCase("origin", at: line.name.range) {
                origin = head.copy(line.value.range)
            } else if head.matchesIgnoringCase("sec-fetch-site", at: line.name.range) {
                fetchSite = head.copy(line.value.range)
            }
        }
        if let token = BearerToken.token(request.lines, in: head) {
            credential = .token(TokenDigest(ofToken: token))
        }
    }
}
