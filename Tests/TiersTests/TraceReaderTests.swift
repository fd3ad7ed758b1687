import Foundation
import Simulation
import Testing

@Suite struct TraceReaderTests {
    /// Runs `body` with a file of this text.
    private func withFile(_ name: String, _ text: String, _ body: (String) throws -> Void) throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("nuthatch-trace-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appendingPathComponent(name)
        try Data(text.utf8).write(to: file)
        try body(file.path)
    }

    @Test(
        "Keys are numbered in order of appearance and keep their largest size",
        arguments: ["", "\n"])
    func reads(end: String) throws {
        try withFile("small.csv", "0,900,10\n1,7,5\n2,900,30\(end)") { path in
            let trace = try TraceReader.read(path)
            #expect(trace.name == "small")
            #expect(trace.requests == [0, 1, 0])
            #expect(trace.sizes == [30, 5])
            #expect(trace.footprintBytes == 35)
            #expect(trace.capacityBytes(percent: 10) == 3)
        }
    }

    @Test(
        "A malformed line is refused with its number",
        arguments: ["1,2", "1,2,x", "1,2,3,4", "", "1,-2,3", "1,2,99999999999", ",,"])
    func refuses(line: String) throws {
        try withFile("bad.csv", "0,1,1\n\(line)\n0,1,1\n") { path in
            #expect(throws: TraceError.badLine(path: path, line: 2)) {
                try TraceReader.read(path)
            }
        }
    }

    @Test("A missing file and one that is not compressed give different errors")
    func refusesFiles() throws {
        #expect(throws: TraceError.unreadable(path: "/nowhere.csv")) {
            try TraceReader.read("/nowhere.csv")
        }
        #expect(throws: TraceError.unreadable(path: "/nowhere.csv.gz")) {
            try TraceReader.read("/nowhere.csv.gz")
        }
        try withFile("plain.csv.gz", "0,1,1\n") { path in
            #expect(throws: TraceError.notCompressed(path: path)) {
                try TraceReader.read(path)
            }
        }
    }
}
