import Ground
import HTTPRules
import Logging
import NIOCore
import Store
import Telemetry

/// The head of an origin's response, evaluated by the rules of its site.
struct EvaluatedResponse {
    /// The head, restricted as the redirects that led to it require.
    let head: ResponseHead
    /// Result of the caching rules.
    let cacheability: Cacheability
    /// Request fields that select the response.
    let vary: VaryNames
    /// Times of request and response.
    let timing: Freshness.ResponseTiming

    /// Evaluates a response.
    ///
    /// - Parameters:
    ///   - head: the head of the response.
    ///   - query: the request.
    ///   - timing: when the response was requested and received.
    ///   - redirects: the redirects that led to it, which limit its freshness.
    ///   - asGet: true to evaluate a response to HEAD as one to GET.
    init(
        _ head: ResponseHead, to query: SiteRequest, _ timing: Freshness.ResponseTiming,
        by redirects: [Redirect], asGet: Bool = false
    ) {
        var cacheability = query.policy.evaluate(head, query, timing, asGet: asGet)
        for redirect in redirects { query.policy.limit(&cacheability, by: redirect) }
        self.head = head.restricted(by: redirects, cacheability)
        self.cacheability = cacheability
        self.timing = timing
        vary = query.policy.varyNames(of: self.head)
    }

    /// Returns the head to store, with a body of `size` bytes or, for `nil`, of unknown size.
    func storedHead(size: UInt64?, under policy: SitePolicy) -> StoredHead {
        policy.storedHead(head, size: size, cacheability, received: timing.receivedWallTime)
    }
}

/// The parts of a response with an accepted head that are required until the end of the body.
struct AcceptedResponse {
    let evaluated: EvaluatedResponse
    let storageDecision: StorageDecision
    /// Where the response is stored, if it is.
    let placement: EntryPlacement
    /// Cache tags of the response.
    let tags: [[UInt8]]
}

/// A response of which the readers have received nothing, not even the head, until its first bytes
/// show whether it is an acceptable image.
struct HeldResponse {
    /// The accepted response.
    let response: AcceptedResponse
    /// The body length sent by the origin; `nil` if unknown.
    let length: UInt64?
    /// Inspection of the body's first bytes.
    private var probe: ImageProbe
    /// The body received so far.
    private var body = BodyBuffer(isRetained: false)
    /// Bytes of memory reserved for the body.
    private var reservedBytes = 0

    /// Creates a held response without body bytes.
    init(response: AcceptedResponse, length: UInt64?) {
        self.response = response
        self.length = length
        probe = ImageProbe(response.evaluated.head)
    }

    /// The kind of the body, as far as it is known.
    var result: ImageProbeResult { probe.result }

    /// Adds a piece to the body.
    mutating func append(_ piece: ByteBuffer) {
        probe.consume(piece.readableBytesUInt8Span)
        body.append(piece)
    }

    /// Records the end of the body.
    mutating func finish() {
        probe.finish()
    }

    /// Reserves memory for the bytes beyond the first `free`, until the kind of the body is known.
    ///
    /// - Parameters:
    ///   - free: number of bytes that need no reservation.
    ///   - reserve: reserves bytes; returns false if there is no capacity.
    /// - Returns: false if there is no capacity.
    mutating func reserveMemory(beyond free: Int, _ reserve: (Int) -> Bool) -> Bool {
        while probe.result == .needsMore, body.heldBytes > free + reservedBytes {
            guard reserve(Self.reservationStepBytes) else { return false }
            reservedBytes += Self.reservationStepBytes
        }
        return true
    }

    /// Bytes of memory reserved at a time.
    private static let reservationStepBytes = 64 << 10

    /// Length of the rest of the body; `nil` if unknown.
    var remainingBytes: UInt64? { length.map { $0 - min($0, body.endOffset) } }

    /// The body received so far, in pieces.
    var pieces: [ByteBuffer] {
        var pieces: [ByteBuffer] = []
        body.appendSlices(from: 0, count: body.heldBytes, to: &pieces)
        return pieces
    }

    /// Returns the problem of an image with more than `pixelsMax` pixels, if this is one.
    func problem(pixelsMax: UInt64?) -> Problem? {
        guard let pixelsMax, let size = probe.result.metadata?.size, size.pixels > pixelsMax else {
            return nil
        }
        return .imageTooLarge(size, pixelsMax: pixelsMax)
    }
}

extension OriginSource {
    /// Holds a response that has just begun, or delivers it at once if its body need not be
    /// inspected.
    func holdUntilRecognised(_ response: HeldResponse) {
        heldResponse = response
        resolveHeldResponse()
    }

    /// Adds a piece to the body of the held response.
    ///
    /// A small amount of bytes needs no reservation, as for any body that is passed on without
    /// capacity in memory. The reservation becomes part of that of the fetch.
    func holdUntilRecognised(_ piece: ByteBuffer) {
        heldResponse?.append(piece)
        let free = context.node.settings.windowBytesMin
        let hasMemory = heldResponse?.reserveMemory(beyond: free) { fetch.reserve($0) }
        guard hasMemory != false else { return discardResponse(.overloaded(.memory), nil) }
        resolveHeldResponse()
    }

    /// Handles the end of the held response's body.
    func heldBodyEnded() {
        heldResponse?.finish()
        resolveHeldResponse(hasEnded: true)
    }

    /// Delivers or refuses the held response once its kind is known; `hasEnded` is true after the
    /// end of its body.
    private func resolveHeldResponse(hasEnded: Bool = false) {
        guard let response = heldResponse, response.result != .needsMore else { return }
        heldResponse = nil
        if let problem = response.problem(pixelsMax: siteRequest.policy.imageRules?.pixelsMax) {
            context.counters.add(.imagesTooLarge)
            guard hasEnded else { return discardResponse(problem, response.remainingBytes) }
            log("origin response refused", why: problem.document.detail)
            fetch.failed(problem)
            return driver.closeToReaders()
        }
        deliver(
            response.response, response.length, isStorable: isStorable(response.result))
        for piece in response.pieces { fetch.bodyReceived(piece) }
    }

    /// Returns true if a body with this result may be stored; counts its defects.
    private func isStorable(_ finding: ImageProbeResult) -> Bool {
        switch finding {
        case .image, .unknown, .needsMore: return true
        case .typeMismatch:
            context.counters.add(.imagesMislabelled)
            log("image not stored", why: "its content does not match its type")
            return false
        case .unreadable:
            // The type is as declared; another fetch would bring nothing else.
            context.counters.add(.imagesUnreadable)
            return true
        }
    }
}
