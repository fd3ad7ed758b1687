import Ground
import HTTPRules
import Platform
import Telemetry
import Wire

/// Requests that require a signed URL.
extension RequestHandler {
    /// Responds to an image API request, after verification of its signature if signing keys are
    /// configured.
    ///
    /// A node without keys ignores signatures, so that URLs may be signed before nodes require it,
    /// and after.
    func respondIfSigned(_ bytes: Span<UInt8>, now: Instant) {
        let reading = SignedTarget.parse(bytes, at: parser.path.range)
        var path = parser.path
        if case .signed(let signed) = reading { path = signed.unsignedTarget }
        switch (ImageTarget.parse(bytes, at: path.range), reading) {
        case (.notImage, _): respondOutsideSites(bytes)
        case (_, .malformed(let fault)): refuse(.invalidSignature(.malformed(fault)))
        case (_, .unsigned) where settings.signer != nil: refuse(.invalidSignature(.unsigned))
        case (.refused(let refusal), _): response.sendProblem(.invalidTarget(refusal, in: bytes))
        case (.image(let url), .signed(let signed)): respondWithImage(bytes, url, signed, now: now)
        case (.image(let url), .unsigned): respondWithImage(bytes, url, nil, now: now)
        }
    }

    /// Responds with the image if the signature, where required, is that of the normalised URL;
    /// otherwise sends a refusal.
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
        if let signer = settings.signer {
            guard let signed else { return }
            if let refusal = signed.refusal(of: text.span, by: signer) { return refuse(refusal) }
        }
        respondWithImage(bytes, key: text.span, key, now: now)
    }

    /// Verifies the signature of a request to a site that requires one; returns false if a refusal
    /// was sent.
    ///
    /// Removes the signature from the parser's path, because it belongs neither to the key nor to
    /// the forwarded request.
    func verifySignature(_ bytes: Span<UInt8>, to plan: SitePolicy) -> Bool {
        var text = scratch
        scratch = []
        defer { scratch = text }
        switch plan.verifySignature(
            of: parser.method, bytes, host: requestedHost, target: parser.path.range,
            by: settings.signer, buffer: &text)
        {
        case .valid(let target):
            parser.truncatePath(at: target.end)
            return true
        case .refused(let problem):
            refuse(problem)
            return false
        }
    }

    /// Counts and sends the refusal of a request without a valid signature.
    private func refuse(_ problem: Problem) {
        if settings.signer != nil, let counter = problem.counter { context.counters.add(counter) }
        // Unlike other bodies, one sent to a site is not read.
        if response.siteCounters != nil {
            rejectSiteRequest(problem)
        } else {
            response.sendProblem(problem)
        }
    }
}

/// Result of the verification of a request's signature.
enum SignatureCheck {
    /// The signature is valid; the extent is the target without it.
    case valid(Extent)
    case refused(Problem)
}

extension SitePolicy {
    /// Methods that signed URLs permit.
    private static let signedMethods = ["GET", "HEAD", "OPTIONS"]

    /// Verifies the signature of a request to this site, which requires one.
    ///
    /// - Parameters:
    ///   - method: the method of the request.
    ///   - bytes: the buffer that contains the request head.
    ///   - host: the range of the requested authority in `bytes`.
    ///   - target: the range of the path and query in `bytes`.
    ///   - signer: the verifier; without one, no signature is valid.
    ///   - text: a buffer for the signed text, kept for its capacity.
    /// - Returns: the target without the signature, or the refusal.
    fileprivate func verifySignature(
        of method: RequestMethod, _ bytes: Span<UInt8>, host: Range<Int>, target: Range<Int>,
        by signer: URLSigner?, buffer text: inout [UInt8]
    ) -> SignatureCheck {
        switch method {
        case .get, .head, .options: break
        default:
            // A signed URL grants reading only.
            let methods = Self.signedMethods.filter {
                settings.methods.isEmpty || settings.methods.contains($0)
            }
            return .refused(.methodNotAllowed(methods))
        }
        let signed: SignedTarget
        switch SignedTarget.parse(bytes, at: target) {
        case .signed(let read): signed = read
        case .unsigned: return .refused(.invalidSignature(.unsigned))
        case .malformed(let fault): return .refused(.invalidSignature(.malformed(fault)))
        }
        text.removeAll(keepingCapacity: true)
        let path = signed.unsignedTarget
        guard appendSignedText(bytes, host: host, path: path.range, to: &text) else {
            return .refused(.malformed(.invalidHost))
        }
        _ = SignatureBase.makeSignedText(&text, expiry: signed.expiry)
        return signed.refusal(of: text.span, by: signer).map(SignatureCheck.refused) ?? .valid(path)
    }
}

extension SignedTarget {
    /// Returns the refusal of a signature that none of the keys has made of `text`, or that has
    /// expired; `nil` if it is valid.
    fileprivate func refusal(of text: Span<UInt8>, by signer: URLSigner?) -> Problem? {
        let isOurs = signer?.accepts(signature, of: text) ?? false
        switch result(isAuthentic: isOurs, now: SystemClock.wallTime()) {
        case .valid: return nil
        case .refused(let refusal): return .invalidSignature(refusal)
        }
    }
}
