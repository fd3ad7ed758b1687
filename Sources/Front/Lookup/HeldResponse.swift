import Ground
import HTTPRules
import Logging
import NIOCore
import Store
import Telemetry

/// A response of which the readers have received nothing, not even the head, until its first bytes
/// show whether it is an acceptable image.
struct HeldResponse {
    /// The accepted response.
    let response: OriginSource.AcceptedResponse
    /// The body length sent by the origin; `nil` if unknown.
    let length: UInt64?
    /// Inspection of the body's first bytes.
    var probe: ImageProbe
    /// The body received so far.
    var body = BodyBuffer(isRetained: false)
    /// Bytes of memory reserved for the body.
    var reservedBytes = 0

    /// Creates a held response without body bytes.
    init(response: OriginSource.AcceptedResponse, length: UInt64?) {
        self.response = response
        self.length = length
        probe = ImageProbe(response.head)
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
    func holdUntilRecognised(_ piece: ByteBuffer) {
        heldResponse?.probe.consume(piece.readableBytesUInt8Span)
        heldResponse?.body.append(piece)
        guard reserveForHeld() else {
            return discardResponse(.overloaded(.memory), nil)
        }
        resolveHeldResponse()
    }

    /// Handles the end of the held response's body.
    func heldBodyEnded() {
        heldResponse?.probe.finish()
        resolveHeldResponse(hasEnded: true)
    }

    /// Reserves memory for the held bytes; returns false if there is no capacity.
    ///
    /// A small amount needs no reservation, as for any body that is passed on without capacity in
    /// memory. The reservation becomes part of that of the fetch.
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

    /// Bytes of memory reserved at a time.
    private static let reservationStepBytes = 64 << 10

    /// Delivers or refuses the held response once its kind is known.
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

    /// Returns true if a body with this result may be stored; logs the reason otherwise.
    private func isStorable(_ finding: ImageProbeResult) -> Bool {
        switch finding {
        case .image, .unknown, .needsMore: return true
        case .typeMismatch:
            context.counters.add(.imagesMislabelled)
            log("image not kept", why: "it is not what its type says")
            return false
        case .unreadable:
            // The type is as declared; another fetch would bring nothing else.
            context.counters.add(.imagesUnreadable)
            return true
        }
    }
}
