import Cluster
import Ground

/// What a journal has been told, kept without files.
struct JournalModel: Equatable {
    var records: [RecordName: [UInt8]] = [:]
    var floors: [ProcessID: UInt64] = [:]
    var retired: [StreamPosition] = []

    mutating func take(_ write: LogWrite) {
        switch write {
        case .record(let record, _):
            revive(record.name.stream)
            records[record.name] = record.content
            cut(record.name.stream)
        case .floor(let position, _):
            revive(position.process)
            raise(position)
        case .note(.dropped(let position)):
            revive(position.process)
            raise(position)
        case .note(.retired(let position)):
            records = records.filter { $0.key.stream != position.process }
            floors[position.process] = nil
            if let place = retired.firstIndex(where: { $0.process == position.process }) {
                retired[place].count = max(retired[place].count, position.count)
            } else {
                retired.append(position)
            }
        case .note(.forgotten(let process)):
            records = records.filter { $0.key.stream != process }
            floors[process] = nil
            retired.removeAll { $0.process == process }
        case .note(.memory), .local: break
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

    /// What a start has found, in the same form.
    init(_ kept: KeptLog) {
        for record in kept.records { records[record.name] = record.content }
        for floor in kept.floors { floors[floor.process] = floor.count }
        retired = kept.retired
    }

    init() {}
}
