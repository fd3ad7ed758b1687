import ArgumentParser
import Simulation

/// `nuthatch-sim eviction`: miss ratios of eviction policies beside each other.
struct EvictionCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "eviction",
        abstract: "Prints object and byte miss ratios of eviction policies on request traces.")

    @Argument(help: "Trace files: timestamp,key,size a line; .gz is read through gzip.")
    var traces: [String]

    @Option(help: "Cache sizes in per cent of the footprint, separated by commas.")
    var percent: String = "1,5,10"

    @Option(help: "Shards that nuthatch splits the cache into by hash.")
    var shards: Int = 1

    @Option(help: "Which shard gives way: rotating, admitting or leastInflated.")
    var victims: String = "leastInflated"

    @Flag(help: "One JSON object a line instead of tables.")
    var json = false

    func validate() throws {
        guard 1...4096 ~= shards else {
            throw ValidationError("--shards must be 1 to 4096, not \(shards)")
        }
        guard EvictionShards.VictimShard(rawValue: victims) != nil else {
            throw ValidationError("--victims must be rotating, admitting or leastInflated")
        }
        _ = try percents()
    }

    func run() throws {
        for path in traces {
            let trace = try TraceReader.read(path)
            let percents = try percents()
            if !json { print(header(trace, percents)) }
            for kind in EvictionKind.allCases {
                let row = percents.map { percent in
                    trace.replay(
                        kind, capacityBytes: trace.capacityBytes(percent: percent),
                        shards: shards, victims: .init(rawValue: victims) ?? .leastInflated)
                }
                print(json ? lines(trace, kind, percents, row) : tableRow(kind, row))
            }
        }
    }

    private func percents() throws -> [Double] {
        try percent.split(separator: ",").map { text in
            guard let value = Double(text), value > 0, value <= 100 else {
                throw ValidationError("--percent must hold numbers above 0 up to 100, not \(text)")
            }
            return value
        }
    }

    private func header(_ trace: EvictionTrace, _ percents: [Double]) -> String {
        let requests = trace.requests.count
        return """
            \(trace.name): \(requests) requests, \(trace.sizes.count) keys, \
            \(trace.footprintBytes) bytes (object / byte miss ratio)
            \(padded("policy", to: 10))\
            \(percents.map { padded("\(short($0)) %", to: 18) }.joined())
            """
    }

    private func tableRow(_ kind: EvictionKind, _ row: [EvictionFigures]) -> String {
        let cells = row.map { figures in
            padded("\(ratio(figures.objectMissRatio)) / \(ratio(figures.byteMissRatio))", to: 18)
        }
        return padded(kind.rawValue, to: 10) + cells.joined()
    }

    private func lines(
        _ trace: EvictionTrace, _ kind: EvictionKind, _ percents: [Double],
        _ row: [EvictionFigures]
    ) -> String {
        zip(percents, row).map { percent, figures in
            """
            {"trace":"\(trace.name)","policy":"\(kind.rawValue)","percent":\(short(percent)),\
            "shards":\(kind == .nuthatch ? shards : 1),"requests":\(figures.requests),\
            "misses":\(figures.misses),"requested_bytes":\(figures.requestedBytes),\
            "missed_bytes":\(figures.missedBytes),\
            "object_miss_ratio":\(ratio(figures.objectMissRatio)),\
            "byte_miss_ratio":\(ratio(figures.byteMissRatio))}
            """
        }.joined(separator: "\n")
    }

    /// Four digits after the point.
    private func ratio(_ value: Double) -> String {
        let scaled = Int((value * 10_000).rounded())
        let digits = String(scaled % 10_000)
        return "\(scaled / 10_000)." + String(repeating: "0", count: 4 - digits.count) + digits
    }

    private func short(_ percent: Double) -> String {
        percent == percent.rounded() ? String(Int(percent)) : String(percent)
    }

    private func padded(_ text: String, to width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }
}
