"""Every chart of reports and of the app: functions that return a `Chart`, one palette."""
