import Ground
import HTTPRules
import Telemetry
import Wire

/// Requests for what only signed URLs are answered with.
extension RequestHandler {
    /// Answers what was asked of the API for images where there are keys, or where its target is
    /// more than a URL.
    ///
    /// A node without keys looks past a signature, so that URLs may be signed before nodes demand
    /// it, and after.
    func respondIfSigned(_ bytes: Span<UInt8>, now: Instant) {
        let reading = SignedTarget.parse(bytes, at: parser.path.range)
        var path = parser.path
        if case .signed(let signed) = reading { path = signed.unsignedTarget }
        switch (ImageTarget.parse(bytes, at: path.range), reading) {
        case (.notImage, _): respondOutsideSites(bytes)
        case (_, .malformed(let fault)): rejectSignature(.malformed(fault))
        case (_, .unsigned) where settings.signer != nil: rejectSignature(.unsigned)
        case (.refused(let refusal), _): sendProblem(.invalidTarget(refusal, in: bytes))
        case (.image(let url), .signed(let signed)): respondWithImage(bytes, url, signed, now: now)
        case (.image(let url), .unsigned): respondWithImage(bytes, url, nil, now: now)
        }
    }

    /// Answers if the signature, where one is demanded, is that of the normalised URL.
    private func respondWithImage(
        _ bytes: Span<UInt8>, _ url: Extent, _ signed: SignedTarget?, now: Instant
    ) {
        // The array is taken out while a span of it is in use, and put back with what room it has
        // grown.
        var text = scratch
        scratch = []
        defer { scratch = text }
        let result = CacheKey.normalise(
            percentEncoded: bytes, at: url.range, into: &text, bytesMax: settings.urlBytesMax)
        if case .refused(let refusal) = result { return sendProblem(.invalidURL(refusal)) }
        let key = SignatureBase.makeBase(&text, expiry: signed?.expiry)
        if settings.signer != nil {
            guard let signed, isSignatureValid(signed, text.span) else { return }
        }
        respondWithImage(bytes, key: text.span, key, now: now)
    }

    /// True if the request that the parser holds may be answered by a site that demands signatures;
    /// otherwise it has been refused.
    ///
    /// The parser's path is then without the signature, which is neither part of the key nor the
    /// origin's business.
    func verifySignature(_ bytes: Span<UInt8>, to plan: SitePolicy) -> Bool {
        switch parser.method {
        case .get, .head, .options: break
        default:
            // Who was given a URL to look at must not be able to change what is there.
            let methods = Self.readingMethods.filter {
                plan.settings.methods.isEmpty || plan.settings.methods.contains($0)
            }
            rejectSiteRequest(.methodNotAllowed(methods))
            return false
        }
        let signed: SignedTarget
        switch SignedTarget.parse(bytes, at: parser.path.range) {
        case .signed(let read): signed = read
        case .unsigned: return rejectSignature(.unsigned)
        case .malformed(let fault): return rejectSignature(.malformed(fault))
        }
        parser.truncatePath(at: signed.unsignedTarget.end)
        var text = scratch
        scratch = []
        defer { scratch = text }
        text.removeAll(keepingCapacity: true)
        let isNamed = plan.appendSignedText(
            bytes, host: requestedHost, path: parser.path.range, to: &text)
        guard isNamed else {
            rejectSiteRequest(.malformed(.invalidHost))
            return false
        }
        _ = SignatureBase.makeBase(&text, expiry: signed.expiry)
        return isSignatureValid(signed, text.span)
    }

    private static let readingMethods = ["GET", "HEAD", "OPTIONS"]

    /// True if one of the keys has signed `text` and it has not expired; otherwise the request has
    /// been refused.
    private func isSignatureValid(_ signed: SignedTarget, _ text: Span<UInt8>) -> Bool {
        let isOurs = settings.signer?.accepts(signed.signature, of: text) ?? false
        switch signed.result(isAuthentic: isOurs, now: SystemClock.wallTime()) {
        case .valid: return true
        case .refused(let refusal): return rejectSignature(refusal)
        }
    }

    /// Gives false.
    @discardableResult
    private func rejectSignature(_ refusal: SignatureRefusal) -> Bool {
        let problem = Problem.invalidSignature(refusal)
        if settings.signer != nil, let counter = problem.counter { context.counters.add(counter) }
        // A body that was sent to a site is not read any more; one sent elsewhere has been.
        if siteCounters != nil { rejectSiteRequest(problem) } else { sendProblem(problem) }
        return false
    }
}
