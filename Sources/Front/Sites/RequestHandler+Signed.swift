import Ground
import HTTPRules
import Platform
import Telemetry
import Wire

/// Requests that require a signed URL.
extension RequestHandler {
    /// Responds to an image API request if signing keys are configured or its target is more than a
    /// URL.
    ///
    /// A node without keys ignores signatures, so that URLs may be signed before nodes require it,
    /// and after.
    func respondIfSigned(_ bytes: Span<UInt8>, now: Instant) {
        let reading = SignedTarget.parse(bytes, at: parser.path.range)
        var path = parser.path
        if case .signed(let signed) = reading { path = signed.unsignedTarget }
        switch (ImageTarget.parse(bytes, at: path.range), reading) {
        case (.notImage, _): respondOutsideSites(bytes)
        case (_, .malformed(let fault)): reject(.malformed(fault))
        case (_, .unsigned) where settings.signer != nil: reject(.unsigned)
        case (.refused(let refusal), _): response.sendProblem(.invalidTarget(refusal, in: bytes))
        case (.image(let url), .signed(let signed)): respondWithImage(bytes, url, signed, now: now)
        case (.image(let url), .unsigned): respondWithImage(bytes, url, nil, now: now)
        }
    }

    /// Responds with the image if the signature, where required, is that of the normalised URL.
    private func respondWithImage(
        _ bytes: Span<UInt8>, _ url: Extent, _ signed: SignedTarget?, now: Instant
    ) {
        // The array is moved out while a span of it is in use, and put back with its capacity.
        var text = scratch
        scratch = []
        defer { scratch = text }
        let result = CacheKey.normalise(
            percentEncoded: bytes, at: url.range, into: &text, bytesMax: settings.urlBytesMax)
        if case .refused(let refusal) = result { return response.sendProblem(.invalidURL(refusal)) }
        let key = SignatureBase.makeSignedText(&text, expiry: signed?.expiry)
        if settings.signer != nil {
            guard let signed, isSignatureValid(signed, text.span) else { return }
        }
        respondWithImage(bytes, key: text.span, key, now: now)
    }

    /// Verifies the signature of a request to a site that requires one; returns false if a refusal
    /// was sent.
    ///
    /// Removes the signature from the parser's path, because it belongs neither to the key nor to
    /// the forwarded request.
    func verifySignature(_ bytes: Span<UInt8>, to plan: SitePolicy) -> Bool {
        switch parser.method {
        case .get, .head, .options: break
        default:
            // A signed URL grants reading only.
            let methods = Self.readingMethods.filter {
                plan.settings.methods.isEmpty || plan.settings.methods.contains($0)
            }
            rejectSiteRequest(.methodNotAllowed(methods))
            return false
        }
        let signed: SignedTarget
        switch SignedTarget.parse(bytes, at: parser.path.range) {
        case .signed(let read): signed = read
        case .unsigned: return reject(.unsigned)
        case .malformed(let fault): return reject(.malformed(fault))
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
        _ = SignatureBase.makeSignedText(&text, expiry: signed.expiry)
        return isSignatureValid(signed, text.span)
    }

    /// Methods that signed URLs permit.
    private static let readingMethods = ["GET", "HEAD", "OPTIONS"]

    /// Returns true if one of the keys has signed `text` and the signature has not expired;
    /// otherwise a refusal was sent.
    private func isSignatureValid(_ signed: SignedTarget, _ text: Span<UInt8>) -> Bool {
        let isOurs = settings.signer?.accepts(signed.signature, of: text) ?? false
        switch signed.result(isAuthentic: isOurs, now: SystemClock.wallTime()) {
        case .valid: return true
        case .refused(let refusal): return reject(refusal)
        }
    }

    /// Sends a refusal; returns false.
    @discardableResult
    private func reject(_ refusal: SignatureRefusal) -> Bool {
        let problem = Problem.invalidSignature(refusal)
        if settings.signer != nil, let counter = problem.counter { context.counters.add(counter) }
        // Unlike other bodies, one sent to a site is not read.
        if response.siteCounters != nil {
            rejectSiteRequest(problem)
        } else {
            response.sendProblem(problem)
        }
        return false
    }
}
