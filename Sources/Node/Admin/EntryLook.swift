import Admin
import Ground
import HTTPRules
import Serving
import Store
import Telemetry
import Tiers
import Wire

/// Looks for everything that a node holds under a URL; waits for the disk, and asks no origin.
struct EntryLook: Sendable {
    let node: NodeCore
    let settings: NodeSettings

    /// One stored answer, wherever it is.
    struct Found: Sendable {
        var key: [UInt8]
        var policy: ReusePolicy
        var facts: EntryFacts
        var head: RenderedHead
        var stamp: Stamp
        var tags: [[UInt8]]
        var name: EntryName?
        var resident: Resident?
        var reading: DiskReading?

        /// Differs between answers that are held under one key.
        var variantName: String {
            String(EntryName(ofKey: key).digest.first, radix: 16)
        }
    }

    /// Where answers may be held, and by which policy they are given.
    struct Place {
        var key: [UInt8]
        var policy: ReusePolicy
    }

    /// Keys under which answers to `url` may be held: of images, and of every site that answers for
    /// its host; in no key is a variant named.
    func places(of url: [UInt8]) -> [Place] {
        var places = imageKeys(of: url).map {
            Place(key: $0, policy: settings.images.plan(ofKey: $0.span).reuse)
        }
        guard let parts = AbsoluteURL(url),
            let number = settings.sites.find(url.span, at: parts.host, isSecure: parts.isSecure)
        else { return places }
        let plan = settings.sitePlans[number]
        var key: [UInt8] = []
        let isMade = plan.makeKey(
            url.span, host: parts.host, path: parts.target, isSecure: parts.isSecure, &key)
        if isMade { places.append(Place(key: key, policy: plan.reuse)) }
        return places
    }

    private func imageKeys(of url: [UInt8]) -> [[UInt8]] {
        var keys: [[UInt8]] = []
        var key: [UInt8] = []
        let made = CacheKey.normalise(
            url: url.span, at: 0..<url.count, into: &key, bytesMax: settings.urlBytesMax)
        if made == .made { keys.append(key) }
        guard let parts = AbsoluteURL(url) else { return keys }
        // What a client asks the image API for is the image.
        let target = Array(url[parts.target])
        if case .image(let extent) = ImageTarget.parse(target.span, at: 0..<target.count) {
            let inner = CacheKey.normalise(
                percentEncoded: target.span, at: extent.range, into: &key,
                bytesMax: settings.urlBytesMax)
            if inner == .made, !keys.contains(key) { keys.append(key) }
        }
        return keys
    }

    /// Everything that is held at `places`; of answers that were selected by fields of their
    /// requests what memory has, and of those that the disk alone has the newest few.
    func look(at places: [Place]) -> [Found] {
        var found: [Found] = []
        for place in places {
            look(for: place.key, place.policy, &found)
            for resident in variants(of: place.key) { add(resident, place.policy, to: &found) }
            // An index keeps the keys of its newest variants as its tags.
            let indexes = found.filter { $0.facts.flags.contains(.isVariantIndex) }
            for key in Set(indexes.flatMap(\.tags)) { look(for: key, place.policy, &found) }
        }
        return found.filter { !$0.facts.flags.contains(.isVariantIndex) }
    }

    private func look(for key: [UInt8], _ policy: ReusePolicy, _ found: inout [Found]) {
        if let held = node.store.held(key) { add(held.resident, policy, to: &found) }
        if let reading = node.disk?.view?.read(EntryName(ofKey: key), key: key) {
            add(reading, policy, to: &found)
        }
    }

    /// Answers that were selected by fields of their requests, as far as memory has them.
    private func variants(of key: [UInt8]) -> [Resident] {
        let start = key + [UInt8(ascii: "\n")]
        var found: [Resident] = []
        for shard in 0..<node.store.shardCount {
            var place: Int?
            repeat {
                let (some, next) = node.store.entries(inShard: shard, below: place, atMost: 512)
                found += some.map(\.resident).filter { $0.text.starts(with: start) }
                place = next
            } while place != nil
        }
        return found
    }

    private func add(
        _ resident: Resident, _ policy: ReusePolicy, to found: inout [Found]
    ) {
        guard !found.contains(where: { $0.resident === resident }) else { return }
        found.append(
            Found(
                key: resident.key, policy: policy, facts: resident.facts,
                head: RenderedHead(resident),
                stamp: resident.stamp, tags: resident.tags, name: resident.name,
                resident: resident))
    }

    private func add(
        _ reading: DiskReading, _ policy: ReusePolicy, to found: inout [Found]
    ) {
        let record = reading.record
        if let place = found.firstIndex(where: { $0.key == record.key }) {
            found[place].reading = reading
        } else if let clock = node.disk?.clock {
            found.append(
                Found(
                    key: record.key, policy: policy, facts: reading.facts(clock),
                    head: RenderedHead(reading),
                    stamp: record.stamp, tags: record.tags, name: record.name, reading: reading))
        }
    }
}
