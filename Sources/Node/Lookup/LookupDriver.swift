import Cluster
import Ground
import HTTPRules
import Origin
import Serving
import Store
import Telemetry
import Wire

/// Does what the ``Lookup`` of a fetch says, and tells it what came of that.
///
/// Confined to the loop of its hall.
final class LookupDriver {
    let run: FillRun
    unowned let hall: Hall
    /// What the answer is called on disk and on the ring, variants apart; nil if it has no name
    /// there.
    private(set) var name: EntryName?
    /// The door whose request causes the fetch; not weak, or each of its later answers would cost
    /// more.
    let door: Door?
    /// A peer's question that causes it, in the stead of a door's request.
    weak var asker: PeerAnswering?
    private var source: (any AnswerSource)?
    /// What peers are told of the request.
    private(set) var relay: [UInt8] = []
    /// What is fetched where a part is wanted; nil if none is.
    private var part: PartTable.Question?
    /// Nobody joins this fetch any more.
    private(set) var isSettled = false
    private var isEnded = false

    init(_ run: FillRun, name: EntryName?, on hall: Hall, for door: Door?) {
        self.run = run
        self.name = name
        self.hall = hall
        self.door = door
    }

    /// Tells the machine, and does what it wants.
    func tell(_ event: (inout Lookup, inout [LookupEffect]) -> Void) {
        perform(run.change { event(&$0.lookup, &$1) })
        hall.watch(self, now: SystemClock.now())
    }

    private func perform(_ effects: [LookupEffect]) {
        for effect in effects {
            // What was done for the one before may have ended it.
            guard !isEnded else { return }
            switch effect {
            case .readDisk: readDisk()
            case .lookBeyond: lookBeyond()
            case .ask(let node, let question): peers()?.put(question, to: node)
            case .cancel(let node): peers()?.cancel(node)
            case .take(let node): peers()?.deliver(from: node)
            case .askOrigin: askOrigin()
            case .resume(let skipsPeers): resume(skipsPeers: skipsPeers)
            case .refuse: fail(.notCached)
            case .wakeReaders, .pace, .breakOff, .dropHead, .stopKeeping: break
            }
        }
    }

    // MARK: Places

    private func readDisk() {
        guard let name, let disk = hall.node.disk, let view = disk.view else {
            return tell { $0.absent(effects: &$1) }
        }
        let reader = DiskSource(self, name: name, tier: disk, view: view)
        source = reader
        reader.look()
    }

    private func lookBeyond() {
        if !query.isBackground { run.limitUnread() }
        part = hall.partQuestion(of: run)
        let (peers, startsNothing) = (knownPeers, part == .part)
        tell {
            $0.wentBeyond(
                peers, startsNothing: startsNothing, SystemClock.now(), effects: &$1)
        }
    }

    /// Nil if the origin is asked from here.
    ///
    /// A node that may lack a purge takes nobody's word but the origin's; nor does one that has not
    /// yet told the others of a change.
    private var knownPeers: Lookup.Peers? {
        // To a request that begins anew because answers are not shared an owner says no more than
        // that the origin is to be asked.
        let isAlone = run.wish.isAlone && !run.wish.isResumption && !query.isImage
        guard query.isShared, !isAlone, !run.wish.skipsPeers, let hub = hall.node.hub,
            hall.fence.isOpen(at: SystemClock.now()), !hall.node.mayBeOldElsewhere(run.key),
            let relay = query.relay(through: hall.node, for: run.client)
        else { return nil }
        self.relay = relay
        let name = name ?? EntryName(ofKey: run.key)
        self.name = name
        let view = hub.view
        return Lookup.Peers(
            me: view.own.member.id,
            preference: hub.rings.ring.owners(of: name.digest).map {
                .init($0, isReachable: view.isReachable($0))
            },
            leaving: Array(view.leaving))
    }

    /// Those that are asked, from the first question on; nil if the node has none.
    private func peers() -> PeerSource? {
        if let peers = source as? PeerSource { return peers }
        guard let hub = hall.node.hub, let name else { return nil }
        let peers = PeerSource(self, name: name, hub: hub)
        source = peers
        return peers
    }

    private var query: SiteRequest { run.query }

    private func askOrigin() {
        if part == .part { run.narrow() }
        if let problem = refusal {
            if !query.control.isOnlyIfCached, let stale = run.stale, standIn(stale, status: nil) {
                return finish()
            }
            return fail(problem)
        }
        run.askOrigin()
        hall.node.fills.readersChanged(run)
        let origin = OriginSource(self, run.view.isPart ? query.inPart : query.asAsked)
        source = origin
        origin.start()
    }

    /// Why the origin is not even asked; nil if it is, which then counts as a fetch.
    private var refusal: Problem? {
        if query.control.isOnlyIfCached { return .notCached }
        let key = run.key
        let refused =
            if let origin = query.plan.origin {
                hall.origin.circuitRefusal(ofSite: origin)
            } else {
                hall.origin.circuitRefusal(ofKey: key.span)
            }
        if let refused { return .origin(refused) }
        switch hall.node.fills.originBegins(run, for: run.holders, now: SystemClock.now()) {
        case nil: return nil
        case .places: return .overloaded(.fills)
        case .share: return .overloaded(.share)
        }
    }

    /// Gives what is stored in the stead of an answer of the origin's of this status, or of none,
    /// if it may be given (RFC 5861 §4).
    func standIn(_ stale: Resident, status: UInt16?) -> Bool {
        guard query.standsIn(stale.facts, now: SystemClock.now()) else { return false }
        run.confirmed(
            stale, isShared: true, isStored: true, nominated: query.nominated(of: stale),
            stoodIn: .init(status: status))
        return true
    }

    /// What was stored before for the same request, as it counts at `now`.
    func before(_ stale: Resident?, now: Instant) -> Acceptance.Before {
        guard let stale else { return .nothing }
        return now < hall.fence.facts(stale.facts, now: now).freshUntil ? .fresh : .stale
    }

    private func resume(skipsPeers: Bool) {
        if let resumption = source as? ResumedSource { return resumption.begin(skipsPeers) }
        guard let peers = source as? PeerSource, let name, let begun = peers.begun else {
            return tell { $0.lost(effects: &$1) }
        }
        let resumption = ResumedSource(self, name: name, begun, receivedBytes: peers.receivedBytes)
        source = resumption
        resumption.begin(skipsPeers)
    }

    // MARK: What providers report

    /// The place has nothing that may be given without asking.
    func absent() {
        tell { $0.absent(effects: &$1) }
    }

    /// The readers get `problem`, and nothing more comes.
    func fail(_ problem: Problem, nominated: FieldNames = FieldNames()) {
        run.failed(problem, nominated: nominated)
        finish()
    }

    /// What a peer has said is no answer to this request; `asPart` if the origin is to be asked for
    /// the part that is wanted.
    func unfit(asPart: Bool = false) {
        if asPart { part = .part }
        tell { $0.unfit(effects: &$1) }
    }

    /// What there was to be had of the answer will not come to its end from here.
    func lost(canBeResumed: Bool = false) {
        tell { $0.lost(canBeResumed: canBeResumed, effects: &$1) }
        if run.isOver { finish() }
    }

    /// The answer is whole, or there will be none: from now on nobody joins this fetch.
    func settle() {
        guard !isSettled else { return }
        isSettled = true
        hall.node.fills.remove(run)
    }

    /// Nothing more comes from where it came.
    func end() {
        guard !isEnded else { return }
        isEnded = true
        run.change { state, _ in state.lookup.ended() }
        hall.node.fills.originEnded(run)
        hall.ended(self)
        source = nil
    }

    func finish() {
        settle()
        end()
    }

    /// Passes the head of an interim answer on to who causes the fetch (RFC 9110 §15.2).
    func relay(interim head: [UInt8]) {
        door?.relay(interim: head, for: run)
        asker?.relay(interim: head, for: run)
    }

    // MARK: What the run, its readers and its loop say

    func pace() { source?.pace() }

    func cancel() {
        tell { $0.cancelled(effects: &$1) }
        source?.cancel()
        finish()
    }

    var isContended: Bool { source?.isContended ?? false }

    /// Another node has asked this one to bring the answer: it waits for nobody who might wait for
    /// it.
    func waitedForByPeer() {
        tell { $0.waitedForByPeer(SystemClock.now(), effects: &$1) }
        (source as? ResumedSource)?.waitedForByPeer()
    }

    var deadline: Instant? { isEnded ? nil : run.deadline }

    func deadlineReached(_ now: Instant) {
        if run.isLookingBack { hall.counters.add(.peerProbesLate) }
        tell { $0.deadlineReached(now, effects: &$1) }
    }

    /// What takes the body of the request that causes the fetch.
    var upload: OriginSource? { source as? OriginSource }
}
