import Admin
import Ground
import HTTPRules
import Telemetry
import Wire

/// The method PURGE on the data port.
extension RequestHandler {
    /// Responds to a PURGE request, which is never forwarded.
    ///
    /// - Parameters:
    ///   - bytes: the buffer that contains the request head.
    ///   - plan: the policy of the request's site; `nil` if it is for none.
    func handlePurge(_ bytes: Span<UInt8>, at plan: SitePolicy? = nil) {
        // A body sent to a site is not read here.
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

    /// Returns true if the client may purge; otherwise a refusal was sent.
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

    /// Returns path and query.
    private func purgeTarget(_ bytes: Span<UInt8>) -> [UInt8] {
        let target = bytes.copy(parser.path.range)
        // The part behind the authority of an absolute target may be empty or begin with the query.
        return target.first == UInt8(ascii: "/") ? target : [UInt8(ascii: "/")] + target
    }

    /// Returns the key of a GET of this target, without the signature if the site requires one;
    /// `nil` if it has none.
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
