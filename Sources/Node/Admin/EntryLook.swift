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
        var facts: EntryFacts
        var head: RenderedHead
        var stamp: Stamp
        var tags: [[UInt8]]
        var name: EntryName?
        var resident: Resident?
        var reading: DiskReading?
    }

    /// Keys under which answers to `url` may be held: of images, and of every site that answers for
    /// its host; in no key is a variant named.
    func keys(of url: [UInt8]) -> [[UInt8]] {
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
        if let number = settings.sites.find(url.span, at: parts.host, isSecure: parts.isSecure) {
            let isMade = settings.sitePlans[number].makeKey(
                url.span, host: parts.host, path: parts.target, isSecure: parts.isSecure, &key)
            if isMade, !keys.contains(key) { keys.append(key) }
        }
        return keys
    }

    /// Everything that is held under `keys`.
    func look(for keys: [[UInt8]]) -> [Found] {
        var found: [Found] = []
        for key in keys {
            let hash = node.store.hash(of: key)
            for resident in node.store.all(key, hash: hash) { add(resident, to: &found) }
            if key.starts(with: "//".utf8) {
                for resident in variants(of: key) { add(resident, to: &found) }
            }
            for name in names(of: key) {
                guard let reading = node.disk?.view?.read(name, key: key) else { continue }
                add(reading, to: &found)
            }
        }
        return found.filter { !$0.facts.flags.contains(.isVariantIndex) }
    }

    /// Answers of a site that were selected by fields of their requests, as far as memory has them.
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

    /// What the answers to an image's URL may be called on disk.
    private func names(of key: [UInt8]) -> [EntryName] {
        let name = EntryName(ofKey: key)
        let codings: [Negotiation] = [[], .brotli, .gzip]
        var names: [EntryName] = [name]
        for types in 0...Negotiation.types.rawValue {
            for coding in codings {
                let wanted = Negotiation(rawValue: types).union(coding)
                for number in 1..<EntryName.candidateCount {
                    let candidate = name.candidate(number, for: wanted)
                    if !names.contains(candidate) { names.append(candidate) }
                }
            }
        }
        return names
    }

    private func add(_ resident: Resident, to found: inout [Found]) {
        guard !found.contains(where: { $0.resident === resident }) else { return }
        found.append(
            Found(
                key: resident.key, facts: resident.facts, head: RenderedHead(resident),
                stamp: resident.stamp, tags: resident.tags, name: resident.name,
                resident: resident))
    }

    private func add(_ reading: DiskReading, to found: inout [Found]) {
        let record = reading.record
        let place = found.firstIndex { other in
            other.key == record.key && other.facts.negotiation == record.negotiation
                && other.facts.varies == record.varies
        }
        if let place {
            found[place].reading = reading
        } else if let clock = node.disk?.clock {
            found.append(
                Found(
                    key: record.key, facts: reading.facts(clock), head: RenderedHead(reading),
                    stamp: record.stamp, tags: record.tags, name: record.name, reading: reading))
        }
    }
}
