import Admin
import Ground
import HTTPRules
import NIOCore
import Origin
import Serving
import Store
import Telemetry
import Wire

/// Answers the requests of one client, one after the other.
///
/// A hit is answered inside the read that brought it, without an allocation. Everything slower
/// becomes a ``Waiting``, during which no further request comes. What carries requests and answers
/// is an ``Outlet``.
///
/// Confined to its event loop.
final class Door: FillReader {
    /// Which requests a door answers.
    enum Side {
        case data
        case admin
        /// Of the node itself, which asks as a client would: answered as they are without a
        /// signature, and in no count of requests and no line of the log of them.
        case errand
    }

    /// How requests and answers are carried (RFC 9110 §2.5).
    enum Carriage {
        case http1
        case http2
    }

    let hall: Hall
    let side: Side
    let carriage: Carriage
    /// Nil once the connection, or the stream, is gone.
    var outlet: (any Outlet)?
    var client: Client?
    /// Reads heads, and holds the one of the request that is being answered.
    var parser: RequestParser
    /// Where the request's head lies in the bytes that are being looked at.
    private(set) var headRange = 0..<0
    /// What a proxy in front says of the request; nil if none is believed.
    private(set) var forwarding: Forwarding?
    var isHeadRequest = false
    /// An answer waits for something, or its body for the client.
    var isAnswering = false
    /// While ``isAnswering``: what it waits for must have come by this instant.
    var deadline = Instant.distantFuture
    /// The answer was broken off here.
    var isBrokenOff = false
    /// The node is stopping.
    var isDraining = false
    /// The client asked for, or we decided on, this being the last answer.
    var closesAfterAnswer = false
    /// Of the site that the request is for; nil for none.
    var siteCounters: SiteCounters?
    /// The key that the site was asked for, of a request that memory did not answer.
    var answeredKey: [UInt8] = []
    /// What the request is called, unless ``givenID`` says it.
    var requestNumber: UInt64 = 0
    /// What its client calls it; empty if it does not, or not in a way that is taken over.
    var givenID: [UInt8] = []
    /// Lines that this answer has beside its own.
    var extraLines: [UInt8] = []
    /// Who asked wants to know how the answer came about, and may.
    var tellsDecision = false
    /// The body of a request to a site, while it goes to the origin.
    var upload: Upload?
    /// The answer in progress, if it is not one that memory gave at once.
    var waiting: Waiting?
    /// What an operator's answer waits for.
    var purgeWaiting: PurgeWaiting?
    /// An operator's request is refused, later.
    var heldRefusal: AdminRefusal?
    /// Room that is kept from one use to the next.
    var slices: [ByteBuffer] = []
    var scratch: [UInt8] = []

    /// When the request that is being answered was read.
    var startedAt = Instant.zero
    /// What the client is told as it happens.
    var events: EventStream?

    /// How the cache takes part in the answer.
    var part = CachePart.none
    // What the access log will say; `logged` is nil when there is no log or no request in progress.
    var logged: LoggedRequest?
    var answeredStatus: UInt16 = 0
    var answeredBytes: UInt64 = 0

    var settings: NodeSettings { hall.settings }

    init(on hall: Hall, side: Side, carriage: Carriage) {
        self.hall = hall
        self.side = side
        self.carriage = carriage
        parser = RequestParser(limits: hall.settings.headLimits)
        slices.reserveCapacity(16)
    }

    /// Bytes of answers that are not on their way to the client.
    var queuedBytes: Int { outlet?.queuedBytes ?? 0 }

    /// A fetch that this door waits for has something for it.
    func woken(by run: FillRun) {
        guard let waiting, waiting.run === run else { return }
        proceed()
        outlet?.flush()
    }

    /// Looks at the deadline of the answer in progress.
    func ticked(_ now: Instant) {
        guard isAnswering, now >= deadline else { return }
        if heldRefusal != nil { endHeldRefusal() } else { waitedLongEnough() }
    }

    /// The connection, or the stream, is gone; whoever waited for something waits no more, and
    /// nothing is left for the next one.
    func gone() {
        dropWaiting()
        if logged != nil { log(isComplete: false) }
        if isAnswering, !isBrokenOff, client?.isBrokenOff != true, side == .data {
            hall.counters.add(.answersLeft)
        }
        isBrokenOff = false
        outlet = nil
        client = nil
        forwarding = nil
        purgeWaiting = nil
        heldRefusal = nil
        events = nil
        isAnswering = false
        extraLines.removeAll(keepingCapacity: true)
        forgetSite()
    }

    func dropWaiting() {
        abandonUpload()
        guard let waiting else { return }
        self.waiting = nil
        dropRun(waiting)
    }

    /// Ends in such a way that no client can take what it has for a whole answer.
    func breakOff() {
        dropWaiting()
        if !isBrokenOff, side == .data { hall.counters.add(.answersBrokenOff) }
        isBrokenOff = true
        outlet?.breakOff()
    }

    /// The parser holds a request whose head lies in `range` of `bytes`.
    @inline(__always)
    func read(_ bytes: Span<UInt8>, _ range: Range<Int>) {
        headRange = range
        if hall.hasForwarders || forwarding != nil { readForwarding(bytes) }
    }

    @inline(never)
    private func readForwarding(_ bytes: Span<UInt8>) {
        let proxies = settings.forwardedFrom
        guard side == .data, let address = client?.address?.unmapped,
            proxies.contains(where: { $0.contains(address) })
        else {
            forwarding = nil
            return
        }
        forwarding = Forwarding(parser.fields.copy(), in: bytes, proxies: proxies)
    }

    /// The request came encrypted.
    var isSecure: Bool { forwarding?.isSecure ?? (client?.isSecure == true) }
    /// Where the authority that was asked for lies in the request's head.
    var askedHost: Range<Int> { forwarding?.host ?? parser.host.range }
    /// Who asks; nil if a proxy says it in a way that nobody understands.
    var clientAddress: IPAddress? {
        guard let forwarding, forwarding.namesClient else { return client?.address }
        return forwarding.client
    }
    /// Whose share of what is limited a request takes; nil for nobody's, as for what a proxy that
    /// speaks for others asks by itself.
    ///
    /// Those whom nobody can tell apart have one together.
    var shareHolder: ShareHolder? {
        if let forwarding, !forwarding.namesClient { return nil }
        return ShareHolder(clientAt: clientAddress ?? client?.address)
    }

    /// Begins to read heads with the limits that hold now.
    func adoptLimits() {
        parser = RequestParser(limits: settings.headLimits)
    }
}
