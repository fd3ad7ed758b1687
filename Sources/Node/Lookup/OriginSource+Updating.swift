import Ground
import HTTPRules
import Logging
import NIOCore
import Origin
import Serving
import Store
import Telemetry
import Tiers
import Wire

/// What an answer without a body does to what is stored.
extension OriginSource {
    /// 304: a stored body stays, with new facts and a new head (RFC 9111 §3.2, §4.3.4).
    func freshen(with head: AnswerHead, _ receipt: Freshness.Receipt) {
        let confirmed = Confirmation.confirmed(
            by: head, of: offered.map { Validators($0.head, facts: $0.facts) },
            received: receipt.receivedWall)
        guard let number = confirmed.first, comesAsBefore(offered[number]) else {
            // Whoever asks again asks without condition.
            for entry in offered { hall.node.forget(entry) }
            run.misunderstood()
            return driver.settle()
        }
        let entry = offered[number]
        let news = update(entry, with: head, receipt)
        run.confirmed(
            news.resident ?? entry, isShared: news.examination.notStored == nil,
            isStored: news.isStored, isValidated: true, nominated: news.nominated)
        driver.settle()
    }

    /// Validators are of one resource: what another says of them means nothing (RFC 9110 §8.8).
    private func comesAsBefore(_ entry: Resident) -> Bool {
        guard query.plan.images != nil else { return true }
        return EntryTags(key: query.key, urls: places).tags
            == entry.tags.filter { URLName.name(inTag: $0) != nil }
    }

    /// What an update by the origin has made of a stored answer.
    private struct News {
        /// Nil if memory has no room for it.
        let resident: Resident?
        let examination: Examination
        let nominated: FieldNames
        let isStored: Bool
    }

    /// Puts the stored answer with the fields of `head` in its place, or forgets it if it may not
    /// be stored any more.
    private func update(
        _ stale: Resident, with head: AnswerHead, _ receipt: Freshness.Receipt,
        freshnessOnly: Bool = false
    ) -> News {
        let plan = query.plan
        let merged = RenderedHead(stale).stored.updated(
            with: head, facts: stale.facts, freshnessOnly: freshnessOnly)
        var examination = plan.examine(
            merged, query, receipt, asGet: true)
        for redirect in redirects { plan.limit(&examination, by: redirect) }
        let redirected = merged.redirected(by: redirects, examination)
        let stored = plan.storedHead(
            redirected, size: stale.facts.size, examination, received: receipt.receivedWall)
        let vary = plan.vary(of: redirected)
        var place = EntryPlace(key: stale.key, hash: stale.hash)
        var index: VariantIndex?
        var isPlaceable = true
        // What another request had selected is this request's answer, too; and what other fields
        // select than before stands elsewhere (RFC 9111 §4.1).
        if !query.isHead, self.stale == nil || vary.names != query.nominated(of: stale) {
            switch hall.node.place(query, selectedBy: vary.names) {
            case .key: break
            case .variant(let found, let names): (place, index) = (found, names)
            case .none: isPlaceable = false
            }
        }
        let resident = run.makeFreshened(
            stale, stale.name == nil ? nil : name(at: place),
            tags: plan.tags(held: stale.tags, key: query.key, hall.originals(by: plan)),
            place: place, plan.facts(examination, size: stale.facts.size, stored, of: merged),
            RenderedHead(stored))
        let isStored = isPlaceable && examination.notStored == nil && resident != nil
        if isStored, let resident {
            // Under the key of the request its successor, or the index of that, takes its place.
            // It may be another variant now.
            let isMoved = place.key != stale.key && stale.key != query.key
            if self.stale != nil, isMoved { hall.node.forget(stale) }
            keep(resident, index, vary.names, place)
        } else if examination.notStored?.isOfRequest != true {
            hall.node.forget(stale)
        }
        return News(
            resident: resident, examination: examination, nominated: vary.names,
            isStored: isStored)
    }

    /// HEAD says whether the stored answer to GET is still that (RFC 9111 §4.3.5).
    func compare(_ head: AnswerHead, _ receipt: Freshness.Receipt) {
        guard
            !query.hasAuthorization, !query.control.isNoStore,
            case .answer(let stored, let reuse) = query.find(
                in: hall.node.store, now: SystemClock.now()),
            reuse != .unusable
        else { return }
        let finding = HeadFinding(
            head, stored: stored.status,
            validators: Validators(stored.head, facts: stored.facts), size: stored.facts.size,
            received: receipt.receivedWall)
        switch finding {
        case .updates: _ = update(stored, with: head, receipt, freshnessOnly: true)
        case .invalidates where query.plan.settings.isShared && hall.node.isInCluster:
            hall.node.invalidate(query.key)
        case .invalidates: hall.node.forget(stored)
        case .nothing: break
        }
    }
}
