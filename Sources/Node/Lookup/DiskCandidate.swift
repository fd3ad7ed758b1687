import Ground
import Wire

/// A name under which an answer may be on disk, and where it then stands in memory.
struct DiskCandidate: Sendable {
    let name: EntryName
    let place: EntryPlace

    init(name: EntryName, place: EntryPlace) {
        self.name = name
        self.place = place
    }

    /// What is looked for first: an image's variants are told by its name, a site's by what stands
    /// under their key.
    static func first(for run: FillRun, name: EntryName) -> [DiskCandidate] {
        let place = EntryPlace(key: run.key, hash: run.hash)
        guard run.query.isImage else { return [DiskCandidate(name: name, place: place)] }
        return (0..<EntryName.candidateCount).map {
            DiskCandidate(name: name.candidate($0, for: run.negotiation), place: place)
        }
    }
}
