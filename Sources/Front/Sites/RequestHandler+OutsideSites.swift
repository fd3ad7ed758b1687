import Admin
import Ground
import HTTPRules
import Peering
import Platform
import Wire

/// Requests that belong to no site and are for no image.
extension RequestHandler {
    /// Responds to a data port request that belongs to no site and is not an image request.
    ///
    /// Health pages are served; other requests are refused with 400, 404 or 405.
    func respondOutsideSites(_ bytes: Span<UInt8>) {
        let request = AdminRequest(of: self, bytes, body: [])
        switch AdminRoute(method: request.method, target: request.target) {
        case .operation(let operation, _) where AdminRoute.publicPaths.contains(operation.path):
            response.sendHealth(operation.id, try? request.query(of: operation))
        case .methodNotAllowed where AdminRoute.isPublicPage(bytes, at: parser.path.range):
            response.sendProblem(.methodNotAllowed)
        case .operation, .methodNotAllowed, .notFound:
            // A Host that is neither a name nor an address cannot belong to a site.
            if context.hasSites, !SiteKey.isAuthority(bytes, at: requestedHost) {
                return response.sendProblem(.malformed(.invalidHost))
            }
            guard settings.servesImages else { return response.sendProblem(.siteUnknown) }
            guard case .notImage = ImageTarget.parse(bytes, at: parser.path.range) else {
                return response.sendProblem(.methodNotAllowed)
            }
            response.sendProblem(.notFound)
        }
    }
}

extension AdminRequest {
    /// Creates the request in the handler's parser, with its `body`.
    init(of handler: RequestHandler, _ bytes: Span<UInt8>, body: [UInt8]) {
        method = String(decoding: bytes.copy(handler.parser.methodName.range), as: UTF8.self)
        target = String(decoding: bytes.copy(handler.parser.path.range), as: UTF8.self)
        host = bytes.copy(handler.parser.host.range)
        head = BufferedRequest(copying: handler.parser, bytes, handler.headRange)
        self.body = body
    }
}

extension AdminRoute {
    /// Returns true if the target in `range` is an operation that the data port serves too.
    static func isPublicPage(_ bytes: Span<UInt8>, at range: Range<Int>) -> Bool {
        // Every request to the site `*` runs this check, and most fail on the first character.
        guard range.count > 1,
            publicInitials & 1 << UInt64(bytes[range.lowerBound + 1] & 63) != 0
        else { return false }
        return publicPaths.contains { path in
            let end = range.lowerBound + path.utf8.count
            guard end <= range.upperBound, bytes.matches(path, at: range.lowerBound..<end) else {
                return false
            }
            return end == range.upperBound || bytes[end] == UInt8(ascii: "?")
        }
    }
}

extension ResponseSender {
    /// Sends the readiness page for `getReadiness`, otherwise the health page.
    ///
    /// With `unfenced=true` in the query, a node that is fenced or no voter is not ready.
    func sendHealth(_ name: AdminOperation.ID, _ query: AdminQuery?) {
        guard name == .getReadiness else { return send(HealthDocument().json) }
        let readiness = context.node.readiness.value
        let isFenced = !context.node.fence.isOpen(at: SystemClock.now())
        let isCounted = context.purges.isVoter
        let needs = query?["unfenced"] != "true" || (!isFenced && isCounted)
        send(
            HealthDocument(readiness, isFenced: isFenced, isVoter: isCounted).json,
            status: HealthDocument.status(readiness, requiring: needs))
    }
}
