import Foundation

extension NodeProcess {
    /// Resident bytes now.
    package var residentBytes: Int { status("VmRSS") }

    /// The most bytes that were ever resident, as the kernel counted.
    package var residentBytesMax: Int { status("VmHWM") }

    /// Open descriptors.
    package var descriptorCount: Int {
        let path = "/proc/\(identifier)/fd"
        return (try? FileManager.default.contentsOfDirectory(atPath: path).count) ?? 0
    }

    /// The value of a metric without labels, or of the series with these, as `/metrics` gives it.
    package func figure(_ series: String) -> Double? {
        guard let page = try? connectAdmin().get("/metrics").text else {
            return nil
        }
        let line = page.split(separator: "\n").first { $0.hasPrefix(series + " ") }
        return line.flatMap { Double($0.dropFirst(series.count + 1)) }
    }

    /// A line of `/proc/…/status` that is given in kB, in bytes; 0 if there is none.
    private func status(_ name: String) -> Int {
        let path = "/proc/\(identifier)/status"
        let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
        let line = text.split(separator: "\n").first { $0.hasPrefix(name + ":") } ?? ""
        let words = line.split(whereSeparator: { $0 == " " || $0 == "\t" })
        return (words.count == 3 ? Int(words[1]) ?? 0 : 0) * 1_024
    }
}

extension NodeProcess {
    /// It says that it may lack a purge.
    package var isFenced: Bool { figure("nuthatch_fenced") != 0 }

    /// It is proven to know every purge, and at least so many members count.
    package func isCurrent(among count: Int) -> Bool {
        !isFenced && (figure("nuthatch_members_counted") ?? 0) >= Double(count)
    }
}
