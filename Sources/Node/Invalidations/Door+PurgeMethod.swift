import Admin
import Ground
import HTTPRules
import Telemetry
import Wire

/// The method PURGE, where clients are served.
extension Door {
    /// Answers a request with the method PURGE, which no origin is ever told of; `plan` is that of
    /// the site that it is for, nil if it is for none.
    func answerPurge(_ bytes: Span<UInt8>, at plan: SitePlan? = nil) {
        // What is sent to a site behind a head is not read here.
        if plan != nil { closeBehindBody() }
        let request = PendingRequest(copying: parser, bytes, headRange)
        guard mayPurge(request, at: plan) else { return }
        let lines = request.head.span
        let command: PurgeCommand
        do throws(PurgeCommandFault) {
            command = try PurgeCommand(
                isSecure: isSecure, authority: bytes.copy(askedHost),
                target: purgedTarget(bytes), siteKey: plan.flatMap { purgedKey(bytes, at: $0) },
                request.lines, in: lines, tagFields: plan?.tagFields ?? TagField.usual)
        } catch {
            return answerProblem(Problem(ProblemDocument(error)))
        }
        do throws(PurgeFault) {
            let (wait, timeout) = try PurgeOptions(request.lines, in: lines).settled
            let targets = command.targets(settings.sites)
            try purge(targets, isSoft: command.isSoft, id: nil, wait, timeout)
        } catch {
            answerProblem(Problem(error.problem))
        }
    }

    /// False if the client may not purge, which it has been told.
    private func mayPurge(_ request: PendingRequest, at plan: SitePlan?) -> Bool {
        let token = BearerToken.find(request.lines, in: request.head.span)
        let verdict = settings.purgePermission.verdict(
            on: clientAddress, token: token.map(TokenDigest.init(ofToken:)))
        switch verdict {
        case .allowed: return true
        case .notConfigured where plan != nil: answerProblem(.purgeNotAllowed)
        case .notConfigured: answerProblem(.purgeNotConfigured)
        case .refused(let refusal):
            answerProblem(
                Problem(ProblemDocument(refusal)),
                fields: refusal.wantsToken ? "WWW-Authenticate: Bearer realm=\"purge\"\r\n" : "")
        }
        hall.counters.add(.purgesRefused)
        return false
    }

    /// Path and query.
    private func purgedTarget(_ bytes: Span<UInt8>) -> [UInt8] {
        let target = bytes.copy(parser.path.range)
        // What follows the authority of an absolute target may be empty or begin with the query.
        return target.first == UInt8(ascii: "/") ? target : [UInt8(ascii: "/")] + target
    }

    /// The key of what a GET is answered with, whose signature, where one is demanded, is no part
    /// of it; nil if there is none.
    private func purgedKey(_ bytes: Span<UInt8>, at plan: SitePlan) -> [UInt8]? {
        var path = parser.path.range
        if plan.isSigned, case .signed(let signed) = SignedTarget.read(bytes, at: path) {
            path = signed.bare.range
        }
        var key: [UInt8] = []
        let isMade = plan.makeKey(
            bytes, host: askedHost, path: path, isSecure: isSecure, &key)
        return isMade ? key : nil
    }
}
