internal import Provider

extension WallClockTime {
    /// The time so long before, or the epoch.
    func earlier(by interval: Interval) -> WallClockTime {
        let all = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        guard !all.overflow else { return self }
        let whole = all.partialValue + UInt64(nanoseconds)
        let rest = whole > interval.nanoseconds ? whole - interval.nanoseconds : 0
        return WallClockTime(seconds: rest / 1_000_000_000, nanoseconds: UInt32(rest % 1_000_000_000))
    }

    /// The time in UTC as RFC 3339 writes it, to milliseconds: `2026-12-01T03:45:53.123Z`.
    var text: String {
        let (days, second) = seconds.quotientAndRemainder(dividingBy: 86_400)
        let (year, month, day) = Self.date(days: days)
        let date = "\(Self.padded(year, 4))-\(Self.padded(month, 2))-\(Self.padded(day, 2))"
        let (hour, rest) = second.quotientAndRemainder(dividingBy: 3_600)
        let clock = "\(Self.padded(hour, 2)):\(Self.padded(rest / 60, 2)):\(Self.padded(rest % 60, 2))"
        return "\(date)T\(clock).\(Self.padded(UInt64(nanoseconds / 1_000_000), 3))Z"
    }

    /// The date so many days after 1970-01-01. Years are counted from March on, so that the day that is sometimes there is the last.
    private static func date(days: UInt64) -> (year: UInt64, month: UInt64, day: UInt64) {
        // 719,468 days lie between 0000-03-01 and 1970-01-01; 146,097 are in 400 years, whatever year they begin with.
        let (era, dayOfEra) = (days + 719_468).quotientAndRemainder(dividingBy: 146_097)
        let leapDays = dayOfEra / 1_460 - dayOfEra / 36_524 + dayOfEra / 146_096
        let yearOfEra = (dayOfEra - leapDays) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        // Five months from March on have 153 days, and so have the next five.
        let month = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * month + 2) / 5 + 1
        let year = era * 400 + yearOfEra + (month >= 10 ? 1 : 0)
        return (year, month < 10 ? month + 3 : month - 9, day)
    }

    private static func padded(_ number: UInt64, _ length: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, length - digits.utf8.count)) + digits
    }
}
