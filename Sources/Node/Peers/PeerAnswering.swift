import Cluster
import Ground
import HTTPRules
import NIOCore
import Serving
import Store
import Telemetry
import Wire

/// The answer to one question of a peer, from memory, from disk, or from a fetch that it joins or
/// causes; never by asking another node what that one would ask this one.
///
/// Confined to the loop of its connection.
final class PeerAnswering: FillReader {
    let connection: PeerConnection
    private let stream: UInt32
    let question: PeerQuestion
    let hall: Hall
    /// For whose sake the peer asks.
    let cause: RequestCause
    var result = Result()
    private(set) var stage = Stage.beginning
    /// Bytes of the body that were announced and are not sent.
    private var slices: [ByteBuffer] = []
    private var timer: Scheduled<Void>?
    private var restarts = 0
    /// What it stands for; nil before it is looked into, and of what was offered.
    private var query: SiteRequest?

    enum Stage {
        case beginning
        /// The head of the fetch's answer is not known.
        case waiting(FillRun, Fill.ReaderID)
        /// The body comes from the fetch; so many bytes of it are announced and still held there.
        case following(FillRun, Fill.ReaderID, lentBytes: Int)
        /// The body comes from an entry, which is announced whole; from here on it is not sent.
        case giving(Resident, offset: UInt64)
        case over
    }

    init(
        _ question: PeerQuestion, on stream: UInt32, of connection: PeerConnection, in hall: Hall
    ) {
        self.question = question
        self.stream = stream
        self.connection = connection
        self.hall = hall
        cause = RequestCause(question.cause, orAs: &hall.requestNames)
    }

    /// Looks where the answer may be.
    func begin() {
        hall.counters.add(question.kind == .get ? .peerGetsAnswered : .peerProbesAnswered)
        guard !question.key.isEmpty else { return beginOffered() }
        let query: SiteRequest
        switch asked() {
        case .refused(let reason): return answer(refusal(reason))
        case .query(let made): query = made
        }
        let (store, now) = (hall.store, SystemClock.now())
        self.query = query
        var stale: Resident?
        switch query.find(in: store, now: now) {
        case .answer(let found, .fresh):
            hall.touch(found, now: now)
            return give(found, from: .memory)
        case .answer(let found, _): stale = found
        case .passes: return answer(refusal(.unshareable))
        case .absent: break
        }
        let glance = stale == nil ? hall.glanceAtDisk(query) : .off
        if case .found(let resident) = glance {
            hall.touch(resident, now: now)
            return give(resident, from: .disk)
        }
        wait(query, stale: stale, glance)
    }

    /// Looks where the answer may be once this node knows what `peer` has told of, or says that it
    /// does not.
    func beginLate(behind peer: NodeID) {
        let time = TimeAmount.nanoseconds(Self.lagMax.nanoseconds)
        timer = hall.loop.assumeIsolated().scheduleTask(in: time) { [weak self] in
            guard let self, case .beginning = stage else { return }
            answer(.behind)
            connection.flush()
        }
        // Confined to the loop, and told on another thread.
        nonisolated(unsafe) weak let answering = self
        hall.desk.whenCaughtUp(with: peer, within: Self.lagMax) { [loop = hall.loop] in
            loop.execute {
                guard let answering = unsafe answering, case .beginning = answering.stage,
                    answering.timer != nil
                else { return }
                answering.timer?.cancel()
                answering.timer = nil
                answering.begin()
                answering.connection.flush()
            }
        }
    }

    /// Within which a node that lags answers, be it that it does (DESIGN.md §7).
    private static let lagMax = Interval.milliseconds(50)

    /// The asker wants it no more, or is gone.
    func cancelled() {
        log(isComplete: false)
        leave()
        stage = .over
    }

    // MARK: A fetch

    private func wait(_ query: SiteRequest, stale: Resident?, _ glance: DiskGlance) {
        let isProbe = question.kind == .probe
        var asksDisk = false
        if case .later = glance { asksDisk = true }
        if isProbe {
            let joined = hall.node.fills.join(query, where: \.isAskingOrigin)
            if let (run, reader) = joined { return attach(run, reader) }
            guard asksDisk else { return answer(.absent) }
        }
        guard hall.node.waiterCount < hall.settings.waitersMax else {
            return answer(isProbe ? .absent : .fetchYourself(.overloaded))
        }
        let name = EntryName(ofKey: query.key)
        var wish = Lookup.Wish()
        wish.isAlone = isProbe
        wish.isProbe = isProbe
        wish.isForPeer = true
        let begin = { [hall, cause] in
            FillRun(
                query, stale: stale, on: hall, cause: cause, client: query.relayed?.holder,
                expected: query.expected(in: hall.store), wish: wish)
        }
        let fills = hall.node.fills
        let admission: FillTable.Admission
        if isProbe {
            let (run, reader) = fills.beginAlone(query, begin: begin)
            admission = .begun(run, reader)
        } else {
            admission = fills.admit(query, lookUp: lookUp(query), begin: begin)
        }
        switch admission {
        case .stored(let resident): give(resident, from: .memory)
        case .joined(let run, let reader):
            result.part = .collapsed
            run.hall.tell(run) { $0.waitedForByPeer() }
            attach(run, reader)
        case .begun(let run, let reader):
            result.part = stale == nil ? .miss : .revalidated
            hall.start(run, name: name, asksDisk: asksDisk, for: nil).asker = self
            attach(run, reader)
        }
    }

    private func attach(_ run: FillRun, _ reader: Fill.ReaderID) {
        hall.node.waiterJoined()
        stage = .waiting(run, reader)
        proceed()
        // Who looks on disk for a probe waits for no origin.
        guard case .waiting = stage, !run.wish.isProbe else { return }
        sayFetching()
    }

    /// Says that it is being fetched, now and again and again.
    private func sayFetching() {
        guard case .waiting = stage else { return }
        answer(.fetching)
        connection.flush()
        let time = TimeAmount.nanoseconds(PeerAnswer.fetchingInterval.nanoseconds)
        timer = hall.loop.assumeIsolated().scheduleTask(in: time) { [weak self] in
            self?.sayFetching()
        }
    }

    func woken(by run: FillRun) {
        proceed()
        connection.flushSoon()
    }

    private func proceed() {
        switch stage {
        case .waiting(let run, let reader): proceedToHead(run, reader)
        case .following(let run, let reader, let lent) where lent == 0: proceed(run, reader)
        case .beginning, .following, .giving, .over: break
        }
    }

    private func proceedToHead(_ run: FillRun, _ reader: Fill.ReaderID) {
        let (step, view) = run.look(reader, on: hall)
        switch step {
        case .startOver(let alone):
            return alone && !view.known.isOwn ? answer(refusal(.unshareable)) : beginAnew()
        case .fail, .breakOff: return answer(failure(view.known.outcome))
        case .wait, .take, .finish: break
        }
        switch view.known.outcome {
        case .open: hall.await(run, for: self)
        case .refused: answer(failure(view.known.outcome))
        case .found(let resident):
            // What the client is given who caused the fetch, and is stale, is no answer to a peer.
            let reuse = query?.reuse(resident.facts, now: SystemClock.now())
            guard reuse == .fresh else { return beginAnew() }
            leave()
            give(resident, from: .disk)
        case .stored(let resident):
            guard var terms = terms(view) else { return answer(refusal(.unshareable)) }
            if isCause, let own = view.known.own { return follow(run, reader, own, &terms) }
            if isCause, !view.known.trailers.isEmpty {
                // With a length nothing could follow the body (RFC 9112 §6.3).
                let answer = FillAnswer(
                    facts: resident.facts, head: RenderedHead(resident).unframed,
                    sizeBytes: nil, isKept: true, tags: resident.tags)
                return follow(run, reader, answer, terms)
            }
            leave()
            give(resident, from: .fetch, terms)
        case .answering(let fill) where run.query.isImage && fill.head.status != 200:
            answer(absence(fill.head.status))
        // No member may give what is a part of something, or of nothing.
        case .answering(let fill) where [206, 304].contains(fill.head.status):
            answer(refusal(.unshareable))
        case .answering(let fill):
            guard var terms = terms(view) else { return answer(refusal(.unshareable)) }
            if isCause, let own = view.known.own { return follow(run, reader, own, &terms) }
            follow(run, reader, fill, terms)
        }
    }

    /// The same with those fields that are for the one who caused it, and are stored by nobody.
    private func follow(
        _ run: FillRun, _ reader: Fill.ReaderID, _ own: FillAnswer, _ terms: inout HeldEntry.Terms
    ) {
        terms.limits.formUnion([.isUnshared, .isUnkept, .isOwn])
        follow(run, reader, own, terms)
    }

    /// The body goes out as it comes.
    private func follow(
        _ run: FillRun, _ reader: Fill.ReaderID, _ fill: FillAnswer, _ terms: HeldEntry.Terms
    ) {
        var entry = HeldEntry(
            fill.facts, size: fill.sizeBytes, fill.head, tags: fill.tags,
            from: fill.isFromDisk ? .disk : .fetch, stamp: run.stamp, selection: selection)
        entry.terms = terms
        guard hold(entry) else { return }
        if fill.isFromDisk { result.part = .disk }
        stage = .following(run, reader, lentBytes: 0)
        timer?.cancel()
        proceed(run, reader)
    }

    private func proceed(_ run: FillRun, _ reader: Fill.ReaderID) {
        var taken: [ByteBuffer] = []
        switch run.step(reader, limit: hall.settings.transferBytesMax, on: hall, slices: &taken) {
        case .wait: hall.await(run, for: self)
        case .take(_, let count):
            stage = .following(run, reader, lentBytes: count)
            slices.append(contentsOf: taken)
            connection.link.bodyBecameReady(count, on: stream)
        case .finish:
            let trailers = isCause ? run.view.known.trailers : []
            connection.link.bodyBecameWhole(on: stream, trailers: trailers)
            end()
        case .startOver, .breakOff, .fail:
            connection.link.breakOff(stream, .broken)
            end(isComplete: false)
        }
    }

    /// What was waited for is not for this question: something else may be, or is fetched.
    private func beginAnew() {
        leave()
        guard restarts < Self.restartsMax else { return answer(refusal(.overloaded)) }
        restarts += 1
        begin()
    }

    /// Fetches in a row that a question may wait for in vain.
    private static let restartsMax = 3

    // MARK: What goes

    /// Says it; if that is the last, all is over.
    func answer(_ answer: PeerAnswer) {
        try? connection.link.answer(answer, on: stream)
        switch answer {
        case .notModified: result.status = 304
        case .originFailed(let failure): result.status = failure.status == 0 ? 502 : failure.status
        default: break
        }
        if answer.isFinal { end() }
    }

    /// Says that it is here; false if that cannot be said, and all is over.
    private func hold(_ entry: HeldEntry) -> Bool {
        do throws(SendRefusal) {
            try connection.link.answer(.held(entry), on: stream)
            result.status = entry.status
            return true
        } catch {
            answer(refusal(error == .tooLong(.payload) ? .tooLarge : .overloaded))
            return false
        }
    }

    private func end(isComplete: Bool = true) {
        log(isComplete: isComplete)
        leave()
        stage = .over
        connection.answered(stream)
    }

    func give(
        _ resident: Resident, from source: HeldEntry.Source,
        _ terms: HeldEntry.Terms = HeldEntry.Terms()
    ) {
        guard resident.status == 200 || !resident.isImage else {
            return answer(absence(resident.status))
        }
        switch source {
        case .memory: result.part = .hit
        case .disk: result.part = .disk
        default: break
        }
        let head = RenderedHead(resident)
        var entry = HeldEntry(
            resident.facts, size: resident.facts.size, head, tags: resident.tags,
            from: source, stamp: resident.stamp, selection: selection,
            key: question.key.isEmpty ? resident.key : [])
        entry.terms = terms
        if question.key.isEmpty {
            entry.policy = hall.settings.sharedPlan(ofKey: entry.key)?.digest ?? 0
        }
        if !question.entityTag.isEmpty, question.entityTag == head.text(head.entityTag) {
            return answer(.notModified(entry))
        }
        guard hold(entry) else { return }
        timer?.cancel()
        stage = .giving(resident, offset: 0)
        guard resident.facts.size > 0 else { return finishGiving() }
        connection.link.bodyBecameReady(Int(resident.facts.size), on: stream)
    }

    private func finishGiving() {
        connection.link.bodyBecameWhole(on: stream)
        end()
    }

    /// The next `count` bytes of the body, which are being sent.
    func takeBody(_ count: Int, into frames: inout [ByteBuffer]) {
        result.bodyBytes += UInt64(count)
        switch stage {
        case .giving(let resident, let offset):
            resident.body.appendSlices(from: offset, count: count, to: &frames)
            stage = .giving(resident, offset: offset + UInt64(count))
            if offset + UInt64(count) == resident.facts.size { finishGiving() }
        case .following(let run, let reader, let lent):
            var left = count
            while left > 0, let slice = slices.first {
                if slice.readableBytes > left, let part = slices[0].readSlice(length: left) {
                    frames.append(part)
                    left = 0
                } else {
                    left -= slice.readableBytes
                    frames.append(slices.removeFirst())
                }
            }
            guard slices.isEmpty else { return }
            run.advance(reader, by: lent)
            stage = .following(run, reader, lentBytes: 0)
            proceed(run, reader)
        case .beginning, .waiting, .over: preconditionFailure("no body to send")
        }
    }

    private func leave() {
        timer?.cancel()
        switch stage {
        case .waiting(let run, let reader), .following(let run, let reader, _):
            hall.node.waiterLeft()
            run.leave(reader)
            stage = .beginning
        case .beginning, .giving, .over: break
        }
        slices.removeAll()
    }
}
