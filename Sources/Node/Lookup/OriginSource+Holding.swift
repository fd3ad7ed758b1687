import Ground
import HTTPRules
import Logging
import NIOCore
import Store
import Telemetry

/// An answer of which nothing was given to readers, not even its head: its first bytes have to say
/// first whether it is an image that may be shown.
struct HeldAnswer {
    let answer: OriginSource.Answer
    /// The body's length that the origin has named; nil if it named none.
    let length: UInt64?
    var probe: ImageProbe
    /// The body so far.
    var body = GrowingBody(isKept: false)
    /// Bytes of the body that memory was reserved for.
    var reservedBytes = 0

    init(answer: OriginSource.Answer, length: UInt64?) {
        self.answer = answer
        self.length = length
        probe = ImageProbe(answer.head)
    }
}

extension OriginSource {
    /// Holds an answer that has just begun, or delivers it at once if its body is not to be looked
    /// into.
    func hold(_ answer: HeldAnswer) {
        held = answer
        judge()
    }

    /// Takes in a piece of the body of the held answer.
    func hold(_ piece: ByteBuffer) {
        held?.probe.feed(piece.readableBytesUInt8Span)
        held?.body.append(piece)
        guard reserveHeld() else {
            return drop(.overloaded(.memory), nil)
        }
        judge()
    }

    /// The body of the held answer has ended.
    func releaseAtEnd() {
        held?.probe.finish()
        judge(hasEnded: true)
    }

    /// Reserves memory for what is held; false if there is none.
    ///
    /// A little is held without, as it is of a body that is passed on without room in memory. What
    /// is reserved becomes part of what the run holds for the body.
    private func reserveHeld() -> Bool {
        guard var answer = held else { return true }
        let free = hall.node.settings.windowBytesMin
        while answer.probe.finding == .needsMore,
            answer.body.heldBytes > free + answer.reservedBytes
        {
            guard run.reserve(Self.reservedAtOnce) else { return false }
            answer.reservedBytes += Self.reservedAtOnce
        }
        held = answer
        return true
    }

    private static let reservedAtOnce = 64 << 10

    /// Delivers or refuses the held answer, once it is known what it is.
    private func judge(hasEnded: Bool = false) {
        guard let answer = held, answer.probe.finding != .needsMore else { return }
        held = nil
        let finding = answer.probe.finding
        if let limit = query.plan.images?.pixelsMax, let size = finding.facts?.size,
            size.pixels > limit
        {
            hall.counters.add(.imagesTooLarge)
            let problem = Problem.imageTooLarge(size, pixelsMax: limit)
            let left = answer.length.map { $0 - min($0, answer.body.endOffset) }
            guard hasEnded else { return drop(problem, left) }
            log("origin answer refused", why: problem.document.detail)
            run.failed(problem)
            return driver.settle()
        }
        deliver(answer.answer, answer.length, isFit: isFit(finding))
        var pieces: [ByteBuffer] = []
        answer.body.appendSlices(from: 0, count: answer.body.heldBytes, to: &pieces)
        for piece in pieces { run.received(piece) }
    }

    /// Whether a body with this finding may be kept; says so if not.
    private func isFit(_ finding: ImageFinding) -> Bool {
        switch finding {
        case .image, .unknown, .needsMore: return true
        case .contradiction:
            hall.counters.add(.imagesMislabelled)
            log("image not kept", why: "it is not what its type says")
            return false
        case .unreadable:
            // It is of the kind that it claims to be; asking for it again would tell no more.
            hall.counters.add(.imagesUnreadable)
            return true
        }
    }
}
