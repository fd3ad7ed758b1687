import Admin
import Ground
import HTTPRules
import Telemetry
import Wire

/// The method PURGE, where clients are served.
extension RequestHandler {
    /// Answers a request with the method PURGE, which no origin is ever told of; `plan` is that of
    /// the site that it is for, nil if it is for none.
    func handlePurge(_ bytes: Span<UInt8>, at plan: SitePolicy? = nil) {
        // What is sent to a site behind a head is not read here.
        if plan != nil { closeAfterBody() }
        let request = BufferedRequest(copying: parser, bytes, headRange)
        guard authorizePurge(request, at: plan) else { return }
        let lines = request.head.span
        let command: PurgeCommand
        do throws(PurgeCommandFault) {
            command = try PurgeCommand(
                isSecure: isSecure, authority: bytes.copy(requestedHost),
                target: purgeTarget(bytes), siteKey: plan.flatMap { purgeKey(bytes, at: $0) },
                request.lines, in: lines, tagFields: plan?.tagFields ?? TagField.defaults)
        } catch {
            return sendProblem(Problem(ProblemDocument(error)))
        }
        do throws(PurgeError) {
            let (wait, timeout) = try PurgeOptions(request.lines, in: lines).resolved
            let targets = command.expanded(settings.sites)
            try purge(targets, isSoft: command.isSoft, id: nil, wait, timeout)
        } catch {
            sendProblem(Problem(error.problem))
        }
    }

    /// False if the client may not purge, which it has been told.
    private func authorizePurge(_ request: BufferedRequest, at plan: SitePolicy?) -> Bool {
        let token = BearerToken.token(request.lines, in: request.head.span)
        let verdict = settings.purgePermission.decision(
            on: clientAddress, token: token.map(TokenDigest.init(ofToken:)))
        switch verdict {
        case .allowed: return true
        case .notConfigured where plan != nil: sendProblem(.purgeNotAllowed)
        case .notConfigured: sendProblem(.purgeNotConfigured)
        case .refused(let refusal):
            sendProblem(
                Problem(ProblemDocument(refusal)),
                fields: refusal.needsToken ? "WWW-Authenticate: Bearer realm=\"purge\"\r\n" : "")
        }
        context.counters.add(.purgesRefused)
        return false
    }

    /// Path and query.
    private func purgeTarget(_ bytes: Span<UInt8>) -> [UInt8] {
        let target = bytes.copy(parser.path.range)
        // What follows the authority of an absolute target may be empty or begin with the query.
        return target.first == UInt8(ascii: "/") ? target : [UInt8(ascii: "/")] + target
    }

    /// The key of what a GET is answered with, whose signature, where one is demanded, is no part
    /// of it; nil if there is none.
    private func purgeKey(_ bytes: Span<UInt8>, at plan: SitePolicy) -> [UInt8]? {
        var path = parser.path.range
        if plan.isSigned, case .signed(let signed) = SignedTarget.parse(bytes, at: path) {
            path = signed.unsignedTarget.range
        }
        var key: [UInt8] = []
        let isMade = plan.makeKey(
            bytes, host: requestedHost, path: path, isSecure: isSecure, &key)
        return isMade ? key : nil
    }
}
