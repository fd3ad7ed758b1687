import Ground
import HTTPRules
import Logging
import NIOCore
import Store
import Telemetry

/// An answer of which nothing was given to readers, not even its head: its first bytes have to say
/// first whether it is an image that may be shown.
struct HeldResponse {
    let response: OriginSource.AcceptedResponse
    /// The body's length that the origin has named; nil if it named none.
    let length: UInt64?
    var probe: ImageProbe
    /// The body so far.
    var body = BodyBuffer(isRetained: false)
    /// Bytes of the body that memory was reserved for.
    var reservedBytes = 0

    init(response: OriginSource.AcceptedResponse, length: UInt64?) {
        self.response = response
        self.length = length
        probe = ImageProbe(response.head)
    }
}

extension OriginSource {
    /// Holds an answer that has just begun, or delivers it at once if its body is not to be looked
    /// into.
    func holdUntilRecognised(_ response: HeldResponse) {
        heldResponse = response
        resolveHeldResponse()
    }

    /// Takes in a piece of the body of the held answer.
    func holdUntilRecognised(_ piece: ByteBuffer) {
        heldResponse?.probe.consume(piece.readableBytesUInt8Span)
        heldResponse?.body.append(piece)
        guard reserveForHeld() else {
            return discardResponse(.overloaded(.memory), nil)
        }
        resolveHeldResponse()
    }

    /// The body of the held answer has ended.
    func heldBodyEnded() {
        heldResponse?.probe.finish()
        resolveHeldResponse(hasEnded: true)
    }

    /// Reserves memory for what is held; false if there is none.
    ///
    /// A little is held without, as it is of a body that is passed on without room in memory. What
    /// is reserved becomes part of what the run holds for the body.
    private func reserveForHeld() -> Bool {
        guard var response = heldResponse else { return true }
        let free = context.node.settings.windowBytesMin
        while response.probe.result == .needsMore,
            response.body.heldBytes > free + response.reservedBytes
        {
            guard fetch.reserve(Self.reservationStepBytes) else { return false }
            response.reservedBytes += Self.reservationStepBytes
        }
        heldResponse = response
        return true
    }

    private static let reservationStepBytes = 64 << 10

    /// Delivers or refuses the held answer, once it is known what it is.
    private func resolveHeldResponse(hasEnded: Bool = false) {
        guard let response = heldResponse, response.probe.result != .needsMore else { return }
        heldResponse = nil
        let finding = response.probe.result
        if let limit = siteRequest.policy.imageRules?.pixelsMax, let size = finding.metadata?.size,
            size.pixels > limit
        {
            context.counters.add(.imagesTooLarge)
            let problem = Problem.imageTooLarge(size, pixelsMax: limit)
            let left = response.length.map { $0 - min($0, response.body.endOffset) }
            guard hasEnded else { return discardResponse(problem, left) }
            log("origin answer refused", why: problem.document.detail)
            fetch.failed(problem)
            return driver.closeToReaders()
        }
        deliver(response.response, response.length, isStorable: isStorable(finding))
        var pieces: [ByteBuffer] = []
        response.body.appendSlices(from: 0, count: response.body.heldBytes, to: &pieces)
        for piece in pieces { fetch.bodyReceived(piece) }
    }

    /// Whether a body with this finding may be kept; says so if not.
    private func isStorable(_ finding: ImageProbeResult) -> Bool {
        switch finding {
        case .image, .unknown, .needsMore: return true
        case .typeMismatch:
            context.counters.add(.imagesMislabelled)
            log("image not kept", why: "it is not what its type says")
            return false
        case .unreadable:
            // It is of the kind that it claims to be; asking for it again would tell no more.
            context.counters.add(.imagesUnreadable)
            return true
        }
    }
}
