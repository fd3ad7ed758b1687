import Cluster
import Ground

/// The content of a journal, kept without files.
struct JournalModel: Equatable {
    var records: [RecordID: [UInt8]] = [:]
    var floors: [ProcessID: UInt64] = [:]
    var retired: [StreamPosition] = []

    mutating func take(_ write: LogWrite) {
        switch write {
        case .record(let record, _):
            revive(record.id.stream)
            records[record.id] = record.encodedContent
            cut(record.id.stream)
        case .floor(let position, _):
            revive(position.process)
            raise(position)
        case .metadata(.dropped(let position)):
            revive(position.process)
            raise(position)
        case .metadata(.retired(let position)):
            records = records.filter { $0.key.stream != position.process }
            floors[position.process] = nil
            if let place = retired.firstIndex(where: { $0.process == position.process }) {
                retired[place].count = max(retired[place].count, position.count)
            } else {
                retired.append(position)
            }
        case .metadata(.forgotten(let process)):
            records = records.filter { $0.key.stream != process }
            floors[process] = nil
            retired.removeAll { $0.process == process }
        case .metadata(.consensusState), .localPurge: break
        }
    }

    private mutating func revive(_ process: ProcessID) {
        guard let place = retired.firstIndex(where: { $0.process == process }) else { return }
        raise(retired.remove(at: place))
    }

    private mutating func raise(_ position: StreamPosition) {
        floors[position.process] = max(floors[position.process] ?? 0, position.count)
        cut(position.process)
    }

    private mutating func cut(_ process: ProcessID) {
        let floor = floors[process] ?? 0
        records = records.filter { $0.key.stream != process || $0.key.number > floor }
    }

    /// The content that a start has found.
    init(_ kept: PersistedLog) {
        for record in kept.records { records[record.id] = record.encodedContent }
        for floor in kept.floors { floors[floor.process] = floor.count }
        retired = kept.retired
    }

    init() {}
}
