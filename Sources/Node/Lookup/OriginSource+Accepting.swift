import Ground
import HTTPRules
import Logging
import NIOCore
import Serving
import Store
import Telemetry
import Tiers
import Wire

/// What becomes of a whole answer of the origin's.
extension OriginSource {
    func accept(_ head: AnswerHead, _ length: UInt64?, _ receipt: Freshness.Receipt) {
        let plan = query.plan
        var examination = plan.examine(head, query, receipt)
        for redirect in redirects { plan.limit(&examination, by: redirect) }
        let redirected = head.redirected(by: redirects, examination)
        let vary = plan.vary(of: redirected)
        var acceptance = Acceptance(
            examination, vary, status: head.status,
            before: driver.before(stale, now: receipt.receivedAt))
        if let problem = plan.refusal(of: head, examination) {
            if problem == .codedImage { hall.counters.add(.imagesCoded) }
            let absence = plan.absence(head, examination, receipt, by: redirects)
            if let stale, absence != nil || acceptance.endsStored { hall.node.forget(stale) }
            if let absence, remember(problem, absence, of: head, vary.names) { return drop(length) }
            return drop(problem, length, nominated: vary.names)
        }
        var place: EntryPlace?
        var index: VariantIndex?
        if acceptance.isStorable {
            switch hall.node.place(query, selectedBy: vary.names, claims: true) {
            case .key: break
            case .variant(let found, let names): (place, index) = (found, names)
            case .none: acceptance.isPlaced = false
            }
        }
        if let stale, acceptance.endsStored { hall.node.forget(stale) }
        if isUnfit(acceptance, head, length) { return giveUpWhole(length) }
        let answer = Answer(
            head: redirected, examination: examination, acceptance: acceptance,
            nominated: vary.names, place: place, index: index,
            tags: tags(of: head), receipt: receipt)
        if plan.images == nil {
            deliver(answer, length)
        } else {
            hold(HeldAnswer(answer: answer, length: length))
        }
    }

    /// Stores, in memory alone, that there is no image for requests that agree in the fields
    /// `names`: whoever asks until then is given `problem`, as who asks now; false if there is no
    /// room for it.
    private func remember(
        _ problem: Problem, _ absence: Examination, of answer: AnswerHead, _ names: FieldNames
    ) -> Bool {
        var variant: (place: EntryPlace, index: VariantIndex)?
        // Where there are variants it says nothing of those that others select.
        var names = names
        names.formUnion(query.expected(in: hall.store))
        switch hall.node.place(query, selectedBy: names, claims: true) {
        case .key: break
        case .variant(let place, let index): variant = (place, index)
        case .none: return false
        }
        var body: [UInt8] = []
        problem.document.append(to: &body)
        let size = UInt64(body.count)
        let head = RenderedHead(problem.storedHead(bodyBytes: size))
        var facts = absence.facts(size: size, entityTag: .empty)
        // Nothing stands in for anything that it is not.
        facts.flags = .mustRevalidate
        (facts.staleIfErrorSeconds, facts.staleWhileRevalidateSeconds) = (0, 0)
        let tags = tags(of: answer)
        let overhead = Resident.overhead(
            keyBytes: variant?.place.key.count ?? query.key.count, headBytes: head.bytes.count,
            tagBytes: Resident.bytes(of: tags), bodyBytes: size)
        guard run.reserve(overhead + BodyLayout.capacity(size)) else { return false }
        run.answered(
            FillAnswer(facts: facts, head: head, sizeBytes: size, isKept: true, tags: tags),
            isShared: true, nominated: names)
        run.received(ByteBuffer(bytes: body))
        let resident = run.ended(name: nil, tags: tags, place: variant?.place) { _ in
            (facts, head)
        }
        guard let resident else { return true }
        hall.node.store.insert(resident)
        keepIndex(variant?.index, names, variant?.place, ofAbsence: true)
        return true
    }

    /// Gives the answer to the readers; `isFit` if it may be kept as far as its body can tell.
    func deliver(_ answer: Answer, _ length: UInt64?, isFit: Bool = true) {
        self.answer = answer
        let (plan, examination) = (query.plan, answer.examination)
        let received = answer.receipt.receivedWall
        let stored = plan.storedHead(
            answer.head, size: length, examination, received: received)
        let rendered = RenderedHead(stored)
        let isKept =
            isFit && answer.acceptance.isStorable && !run.isOvertaken
            && hasRoom(length, rendered, answer.place)
        if isKept, let index = answer.index, let place = answer.place {
            // Before the body: who asks for another variant meanwhile must make it one of the same.
            hall.node.keep(
                index, answer.nominated, at: place, of: query.base, stamp: run.stamp,
                now: answer.receipt.receivedAt)
        }
        if answer.acceptance.isHitForMiss, plan.images == nil {
            hall.node.notePasses(query, now: SystemClock.now())
        }
        // Whoever is served from memory needs none; a miss that would take more has to wait.
        guard isKept || run.openWindow() else { return drop(.overloaded(.memory), length) }
        var given = FillAnswer(
            facts: plan.facts(examination, size: length ?? 0, stored, of: answer.head),
            head: rendered, sizeBytes: length, isKept: isKept, tags: answer.tags)
        if !isKept {
            given.head = RenderedHead(
                plan.unstoredHead(
                    answer.head, size: length, without: examination.unstoredFields,
                    received: received))
        }
        given.examination = examination
        run.answered(
            given, isShared: answer.acceptance.isShared,
            isStored: isFit && answer.acceptance.isStorable, nominated: answer.nominated,
            own: own(given, answer),
            isHitForMiss: answer.acceptance.isHitForMiss)
    }

    /// The answer with those fields that are for the client who asked and are not stored (RFC 9111
    /// §5.2.2.4, §5.2.2.7); nil if there are none.
    private func own(_ given: FillAnswer, _ answer: Answer) -> FillAnswer? {
        guard !answer.examination.unstoredFields.isEmpty else { return nil }
        var own = given
        own.head = RenderedHead(
            query.plan.unstoredHead(
                answer.head, size: given.sizeBytes, without: FieldNames(),
                received: answer.receipt.receivedWall))
        return own
    }

    func keep(
        _ resident: Resident, _ index: VariantIndex?, _ names: FieldNames, _ place: EntryPlace?
    ) {
        hall.node.keep(resident)
        if query.plan.settings.isShared { hall.node.offer(resident) }
        keepIndex(index, names, place)
    }

    private func keepIndex(
        _ index: VariantIndex?, _ names: FieldNames, _ place: EntryPlace?, ofAbsence: Bool = false
    ) {
        guard let index, let place else { return }
        hall.node.keep(
            index, names, at: place, of: query.base, stamp: run.stamp, now: SystemClock.now(),
            inMemoryAlone: ofAbsence)
    }

    /// The tags of the answer; says so if there are more than are kept, because a purge by those
    /// will not find it.
    private func tags(of head: AnswerHead) -> [[UInt8]] {
        let tags = query.plan.tags(
            of: head, key: query.key, hall.originals(by: query.plan), places: places)
        if tags.cutCount > 0 { hall.noteCut(tags.cutCount, of: query.key, for: run.cause) }
        return tags.tags
    }

    /// Where the answer comes from, if the origin has sent it elsewhere.
    var places: [[UInt8]] { redirects.last.map { [$0.url] } ?? [] }

    /// True if the body may be kept as far as its length is known; reserves the memory for it.
    private func hasRoom(_ length: UInt64?, _ head: RenderedHead, _ place: EntryPlace?) -> Bool {
        if let length, length > query.plan.objectBytesMax { return false }
        let overhead = Resident.overhead(
            keyBytes: place?.key.count ?? query.key.count, headBytes: head.bytes.count,
            bodyBytes: length ?? 0)
        let body = length.map(BodyLayout.capacity) ?? FillAnswer.reservedBytes(growingTo: 0)
        return run.reserve(
            overhead + body,
            judgedAs: hall.node.judgedHash(of: name(at: place), at: place?.hash ?? run.hash))
    }
}
