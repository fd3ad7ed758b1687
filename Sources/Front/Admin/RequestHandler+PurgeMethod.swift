import Admin
import Ground
import HTTPRules
import Telemetry
import Wire

/// The methods PURGE and BAN on the data port.
extension RequestHandler {
    /// Responds to a PURGE or BAN request, which is never forwarded.
    ///
    /// - Parameters:
    ///   - bytes: the buffer that contains the request head.
    ///   - plan: the policy of the request's site; `nil` if it is for none.
    func handlePurge(_ bytes: Span<UInt8>, at plan: SitePolicy? = nil) {
        // A body sent to a site is not read here.
        if plan != nil { closeAfterBody() }
        let request = BufferedRequest(copying: parser, bytes, headRange)
        let token = BearerToken.token(request.lines, in: request.head.span)
        let verdict = settings.purgePermission.decision(
            on: clientAddress, token: token.map(TokenDigest.init(ofToken:)))
        if let refusal = Problem(verdict, isForSite: plan != nil) {
            response.sendProblem(refusal, fields: verdict.challengeLine)
            return context.counters.add(.purgesRefused)
        }
        let command: PurgeCommand
        do throws(PurgeCommandFault) {
            command = try PurgeCommand(of: self, bytes, request, at: plan)
        } catch {
            return response.sendProblem(Problem(ProblemDocument(error)))
        }
        do throws(PurgeError) {
            let (wait, timeout) = try PurgeOptions(request.lines, in: request.head.span).resolved
            let targets = command.expanded(settings.sites)
            pendingPurge = try PendingPurge.issue(
                targets, isSoft: command.isSoft, id: nil, wait, timeout, to: response)
        } catch {
            response.sendProblem(Problem(error.problem))
        }
    }
}

extension Problem {
    /// Creates the refusal of a PURGE request; returns `nil` if the client may purge.
    ///
    /// `isForSite` is true if the target belongs to a site. If no client may purge, the status is
    /// 403 for a site, and 405 otherwise.
    fileprivate init?(_ decision: PurgePermission.Decision, isForSite: Bool) {
        switch decision {
        case .allowed: return nil
        case .notConfigured: self = isForSite ? .purgeNotAllowed : .purgeNotConfigured
        case .refused(let refusal): self.init(ProblemDocument(refusal))
        }
    }
}

extension PurgePermission.Decision {
    /// The WWW-Authenticate line of a refusal; empty if a token would not help.
    fileprivate var challengeLine: String {
        guard case .refused(let refusal) = self, refusal.needsToken else { return "" }
        return "WWW-Authenticate: Bearer realm=\"purge\"\r\n"
    }
}

extension PurgeCommand {
    /// Creates the command of the request in the handler's parser, of which `request` is a copy.
    fileprivate init(
        of handler: RequestHandler, _ bytes: Span<UInt8>, _ request: BufferedRequest,
        at plan: SitePolicy?
    ) throws(PurgeCommandFault) {
        var target = bytes.copy(handler.parser.path.range)
        // The part behind the authority of an absolute target may be empty or begin with the query.
        if target.first != UInt8(ascii: "/") { target.insert(UInt8(ascii: "/"), at: 0) }
        try self.init(
            isSecure: handler.isSecure, authority: bytes.copy(handler.requestedHost),
            target: target, siteKey: plan.flatMap { Self.siteKey(of: handler, bytes, at: $0) },
            request.lines, in: request.head.span, tagFields: plan?.tagFields ?? TagField.defaults)
    }

    /// Returns the key of a GET of the request's target, without the signature if the site requires
    /// one; `nil` if it has none.
    private static func siteKey(
        of handler: RequestHandler, _ bytes: Span<UInt8>, at plan: SitePolicy
    ) -> [UInt8]? {
        var path = handler.parser.path.range
        if plan.isSigned, case .signed(let signed) = SignedTarget.parse(bytes, at: path) {
            path = signed.unsignedTarget.range
        }
        var key: [UInt8] = []
        let isMade = plan.makeKey(
            bytes, host: handler.requestedHost, path: path, isSecure: handler.isSecure, &key)
        return isMade ? key : nil
    }
}
