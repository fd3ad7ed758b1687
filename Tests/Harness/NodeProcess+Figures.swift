extension NodeProcess {
    /// What the kernel counts of it; nil once it is gone.
    private var statistics: ProcessStatistics? { try? ProcessStatistics(of: identifier) }

    /// Resident bytes now.
    package var residentBytes: Int { statistics?.residentBytes ?? 0 }

    /// The most bytes that were ever resident, as the kernel counted.
    package var residentBytesMax: Int { statistics?.residentBytesMax ?? 0 }

    /// Open descriptors.
    package var descriptorCount: Int { statistics?.descriptors ?? 0 }

    /// How many entries it has on disk; -1 if it does not say.
    package var diskEntries: Double { metric("nuthatch_disk_entries") ?? -1 }

    /// How many entries it has still to hand over; nil if it does not say.
    package var offersPending: Double? {
        guard let waiting = metric("nuthatch_offers_pending{state=\"waiting\"}"),
            let open = metric("nuthatch_offers_pending{state=\"open\"}")
        else { return nil }
        return waiting + open
    }

    /// The value of a metric without labels, or of the series with these, as `/metrics` gives it.
    package func metric(_ series: String) -> Double? {
        guard let page = try? connectAdmin().get("/metrics").text else {
            return nil
        }
        let line = page.split(separator: "\n").first { $0.hasPrefix(series + " ") }
        return line.flatMap { Double($0.dropFirst(series.count + 1)) }
    }

    /// A document of its admin port, as JSON.
    ///
    /// - Throws: `NotDocument` if the answer is not 200 or no JSON object.
    package func document(_ path: String) throws -> [String: Any] {
        let response = try connectAdmin().get(path)
        guard response.status == 200, let document = response.document else {
            throw NotDocument(path: path, response: response)
        }
        return document
    }

    /// An answer that is no document.
    package struct NotDocument: Error {
        let path: String
        let response: Response
    }
}

extension NodeProcess {
    /// It says that it may lack a purge.
    package var isFenced: Bool { metric("nuthatch_fenced") != 0 }

    /// It is counted, and proven to know every purge.
    package var isReadyUnfenced: Bool {
        (try? connectAdmin().get("/readyz?unfenced"))?.status == 200
    }

    /// It is proven to know every purge, and at least so many members count.
    package func isCurrent(among count: Int) -> Bool {
        !isFenced && (metric("nuthatch_members_counted") ?? 0) >= Double(count)
    }
}
